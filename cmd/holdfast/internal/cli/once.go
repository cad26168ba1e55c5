package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/internal/view"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// onceMaxHold is the help for --max-hold of once and once begin.
const onceMaxHold = "stop the work, and release the key, after this long"

func (a *app) onceCommand() *cobra.Command {
	var f jobFlags
	cmd := &cobra.Command{
		Use:   "once KEY [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command unless it was done already, and record its output",
		Long: `Once runs COMMAND unless it has succeeded under this KEY before, and records its standard
output. If it was done already, nothing runs and the exit status is 0. A COMMAND that fails
leaves KEY free. While another client runs it, once waits for the result or, if that run fails,
for its turn.

The "--" before COMMAND is required, except with -c. A KEY that begins with "-", or that is
named like a command below, goes after another "--": holdfast once -- status -- COMMAND.

The exit status is COMMAND's own, 128 + n if signal n ended it, 0 if it was done already, or
   73  the output is too long           124  --max-hold passed
   75  another client is running it     126  COMMAND cannot be executed
   78  KEY has another --fingerprint    127  COMMAND does not exist
   79  the lease was lost
Others: holdfast --help. After 79 and 124, COMMAND has been stopped.`,
		Example: `  holdfast once --retention 48h report-2026-11-21 -- ./report.sh
  holdfast once charge-42 --replay -- ./charge.sh 42`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			words, command, given := splitAtDash(args, cmd.ArgsLenAtDash())
			if len(words) > 0 && !given && len(f.shell) == 0 {
				return usage("once: no command given: want KEY -- COMMAND")
			}
			return a.once(&f, words, command)
		},
	}
	cmd.Flags().SetNormalizeFunc(ofFlock)
	f.define(cmd, "no-wait wait command retention replay ttl reason quiet verbose"+
		" | busy-status max-hold fingerprint max-output on-lost kill-after wait-children status-fd label")
	cmd.Flags().Lookup("max-hold").Usage = onceMaxHold
	f.reportFlagErrors()
	cmd.AddCommand(a.onceStatusCommand(), a.onceListCommand(), a.onceForgetCommand())
	cmd.AddCommand(a.onceScriptCommands()...)
	return cmd
}

// splitAtDash returns the words before and after the "--". If a "--" comes first, it only ends
// the flags, and the next one counts.
func splitAtDash(args []string, dash int) (words, command []string, given bool) {
	if dash == 0 {
		if dash = slices.Index(args, "--"); dash >= 0 {
			return args[:dash], args[dash+1:], true
		}
	}
	if dash < 0 {
		return args, nil, false
	}
	return args[:dash], args[dash:], true
}

// onKeys checks the arguments of a command of once. It refuses a "--" unless a key that begins
// with "-" follows: most likely the user wants to run a command under a key with the name of the
// command.
func onKeys(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		isKey := len(args) == 1 && strings.HasPrefix(args[0], "-")
		if cmd.ArgsLenAtDash() >= 0 && !isKey {
			return usage("%s: to run a command under the key %q, write: holdfast once -- %s -- COMMAND", verbOf(cmd), cmd.Name(), cmd.Name())
		}
		return check(cmd, args)
	}
}

func (a *app) onceStatusCommand() *cobra.Command {
	cmd := a.question("status KEY", "Show whether work is done, by the exit status too", onKeys(names(1, 1)), a.onceStatus)
	cmd.Long = `Status shows the state of KEY. The exit status is 0 if it is done, 75 if it is in progress,
and 1 otherwise. For a schedule of a Go program it is 0 if a replica leads it, and 1 if none
does. Others: holdfast --help.`
	cmd.Example = `  holdfast once status charge-42
  holdfast once status charge-42 --json | jq -r .state`
	return cmd
}

func (a *app) onceStatus(ctx context.Context, c *holdfast.Client, args []string) error {
	key := args[0]
	s, err := c.Records().Once(ctx, key)
	if err != nil {
		return err
	}
	if s.State == holdfast.OnceScheduled {
		return a.scheduleStatus(ctx, c, s)
	}
	text, status := "unknown: no client is running it, and it was not done lately", exit.Not
	switch s.State {
	case holdfast.OnceDone:
		text, status = fmt.Sprintf("done, and counts as done for another %s", lockinfo.Span(s.ExpiresIn)), exit.OK
	case holdfast.OnceInProgress:
		text, status = "in progress by "+show.Plain(s.Holder.String()), exit.Busy
		if s.Since > 0 {
			text += " for " + lockinfo.Span(s.Since)
		}
	}
	return a.answerWith(status, view.Once(s), fmt.Sprintf("%s is %s\n", show.Plain(key), text))
}

// scheduleStatus shows a schedule. The exit status is 0 if a replica leads it.
func (a *app) scheduleStatus(ctx context.Context, c *holdfast.Client, e holdfast.OnceRecord) error {
	s, err := c.Records().Schedule(ctx, e.Key)
	if err != nil {
		return err
	}
	v, status := view.Once(e), exit.OK
	v.Schedule = view.Status(e.Key, s)
	if !s.Led {
		status = exit.Not
	}
	return a.answerWith(status, v, show.Plain(e.Key)+" is a schedule\n"+show.Schedule(s))
}

func (a *app) onceForgetCommand() *cobra.Command {
	cmd := a.question("forget KEY", "Delete the record of work, so that it can run again", onKeys(names(1, 1)),
		func(ctx context.Context, c *holdfast.Client, args []string) error {
			found, err := c.Records().Forget(ctx, args[0])
			if err != nil {
				return err
			}
			text := " was not done\n"
			if found {
				text = " is forgotten\n"
			}
			return a.answer(struct {
				Key       string `json:"key"`
				Forgotten bool   `json:"forgotten"`
			}{args[0], found}, show.Plain(args[0])+text)
		})
	cmd.Example = `  holdfast once forget charge-42
  holdfast once forget charge-42 --json | jq .forgotten`
	return cmd
}

func (a *app) onceListCommand() *cobra.Command {
	cmd := a.question("list [PREFIX]", "List the keys that are done or in progress, and schedules", onKeys(words(0, 1)),
		func(ctx context.Context, c *holdfast.Client, args []string) error {
			a.subject = "" // PREFIX is not a key
			entries, err := show.All(c.Records().List(ctx, strings.Join(args, "")))
			if err != nil {
				return err
			}
			slices.SortFunc(entries, func(x, y holdfast.OnceRecord) int { return strings.Compare(x.Key, y.Key) })
			return a.answer(show.Each(entries, view.Once), show.OnceTable(entries))
		})
	cmd.Example = `  holdfast once list charge-
  holdfast once list --json | jq -r '.[] | select(.state == "done") | .key'`
	return cmd
}
