package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire/view"
)

// onceFlags are the flags of once as they were given.
type onceFlags struct {
	jobFlags
	retention   time.Duration
	replay      bool
	fingerprint string
	maxOutput   int
	stepFlags
}

func (a *app) onceCommand() *cobra.Command {
	var f onceFlags
	cmd := &cobra.Command{
		Use:   "once KEY [flags] -- COMMAND [ARGUMENT...] | once status KEY | once forget KEY | once list [PREFIX] | once begin|complete|fail KEY",
		Short: "Run a command unless it was done already, and keep its output",
		Long: `Once runs COMMAND if nobody has run it under this KEY yet, and keeps what it
writes to standard output. If it was done already nothing is run, and the exit
status is 0. A command that fails leaves the KEY free for the next caller. While
somebody else runs it once waits, for the result or, if that run fails, for the
turn to run it; -n does not wait. The letters are those of run.

once status KEY tells by its status: 0 done, 75 in progress, 1 neither.
once forget KEY deletes what was recorded.
once list [PREFIX] lists the keys that are done or in progress.
once begin KEY prints do, done or busy, for a script that works itself: with "do" it
is to work, and then to call once complete KEY, which records standard input or
--value, or once fail KEY. With --pid $$ the key is kept until the script ends.

The "--" before COMMAND is required, unless -c has it: what stands before it is
always a KEY, even "status", "forget", "list" and "begin". A KEY that begins with "-" goes
after a "--" of its own: holdfast once -- -KEY -- COMMAND.

The exit status is the command's own, or 128 + n if signal n ended it, or
  0   it was done already               77   the store refuses our rights
  64  wrong arguments                   78   the store cannot do this, or KEY was
  69  the store cannot be reached            used with another --fingerprint
  73  the output is too long to keep    79   the lease was lost; the command was stopped
  74  standard output cannot be written 124  --max-hold was over; the command was stopped
  75  somebody else is running it       126  the command cannot be executed
                                        127  the command does not exist`,
		Example: `  holdfast once --retention 48h report-2026-11-21 -- ./report.sh
  holdfast once charge-42 --replay -- ./charge.sh 42
  holdfast once status charge-42
  case "$(holdfast once begin charge-42 --pid $$)" in do) ./charge.sh 42 | holdfast once complete charge-42;; esac`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onceOrLook(cmd, &f, args)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetNormalizeFunc(ofFlock)
	flags.BoolVarP(&f.noWait, "no-wait", "n", false, "do not wait while somebody else runs it")
	durationVarP(flags, &f.wait, "wait", "w", 0, "wait at most `SECONDS` or a duration such as 1m30s; 0 is -n")
	flags.IntVarP(&f.busy, "busy-status", "E", exit.Busy, "exit `STATUS` if somebody else runs it")
	flags.StringArrayVarP(&f.shell, "command", "c", nil, "run `STRING` with sh -c")
	durationVar(flags, &f.retention, "retention", 24*time.Hour, "how long it counts as done")
	flags.BoolVar(&f.replay, "replay", false, "if it was done already, print what it wrote then")
	durationVar(flags, &f.ttl, "ttl", 30*time.Second, "lease TTL: after this host dies, others wait this long")
	durationVar(flags, &f.maxHold, "max-hold", 0, "stop the command so that the key is released within this time")
	flags.StringVar(&f.onLost, "on-lost", "term", "what happens to the command if the lease is lost: `term|kill|ignore`")
	durationVar(flags, &f.killAfter, "kill-after", 0, "time between TERM and KILL (default: a quarter of the TTL, 5s at most)")
	flags.BoolVar(&f.children, "wait-children", false, "it is done when what the command leaves behind has ended, too")
	flags.StringVar(&f.fingerprint, "fingerprint", "", "`TEXT` that tells this work from other work under the same key")
	flags.IntVar(&f.maxOutput, "max-output", 1<<20, "longest standard output in `BYTES`; up to 16 MiB")
	flags.StringVar(&f.reason, "reason", "", "`TEXT` shown to others while it runs")
	flags.StringArrayVar(&f.labels, "label", nil, "`KEY=VALUE` shown to others; may be repeated")
	flags.IntVar(&f.statusFD, "status-fd", 0, "report events as JSON lines to file descriptor `N`")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no messages about the key")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "tell what happens to the key")
	f.defineSteps(flags)
	f.reportFlagErrors(cmd)
	return a.withJSON(cmd)
}

// onceOrLook decides what the words ask for: with a "--" and a command behind
// it they are a key to run it under, whatever the key's name; without, they
// are "status KEY", "forget KEY" or "list".
func (a *app) onceOrLook(cmd *cobra.Command, f *onceFlags, args []string) error {
	words, command, given := splitAtDash(args, cmd.ArgsLenAtDash())
	switch {
	case given || len(f.shell) > 0:
		if cmd.Flags().Changed("pid") || cmd.Flags().Changed("value") {
			return usage("once: --pid and --value are for begin and complete")
		}
		return a.once(cmd, f, words, command)
	case len(words) > 0 && steps[words[0]] != nil:
		return a.onceStep(cmd, f, words)
	case len(words) > 0 && words[0] == "status":
		return a.look(cmd, words, a.onceStatus)
	case len(words) > 0 && words[0] == "list":
		return a.onceList(cmd, words)
	case len(words) > 0 && words[0] == "forget":
		return a.look(cmd, words, a.onceForget)
	case len(words) == 0:
		return usage("once: no key given")
	}
	return usage(`once: no command given: want KEY -- COMMAND, status KEY, forget KEY, begin KEY, complete KEY, fail KEY or list`)
}

// splitAtDash returns what stands before and after the "--". One that comes
// first only ends the flags; the next one counts.
func splitAtDash(args []string, dash int) (words, command []string, given bool) {
	if dash == 0 {
		dash = slices.Index(args, "--")
		if dash >= 0 {
			return args[:dash], args[dash+1:], true
		}
	}
	if dash < 0 {
		return args, nil, false
	}
	return args[:dash], args[dash:], true
}

// look calls f for the key after the first word.
func (a *app) look(cmd *cobra.Command, words []string, f func(context.Context, *holdfast.Client, string) error) error {
	if len(words) == 2 {
		a.verb, a.subject = "once "+words[0], subjectOf(words[1:])
	} else {
		return usage("once %s: want one KEY; to run a command under the key %q, put -- before it", words[0], words[0])
	}
	if err := onlyAsks(cmd, words[0]); err != nil {
		return err
	}
	if err := driver.CheckName(words[1]); err != nil {
		return usage("once %s: %w", words[0], err)
	}
	return a.ask(cmd, func(ctx context.Context, c *holdfast.Client) error { return f(ctx, c, words[1]) })
}

// onlyAsks refuses the flags that are for running a command.
func onlyAsks(cmd *cobra.Command, word string) (err error) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Name != "json" && flag.Name != "store" && flag.Name != "store-file" {
			err = usage("once %s: --%s is for running a command", word, flag.Name)
		}
	})
	return err
}

// onceStatus tells what has become of a key.
func (a *app) onceStatus(ctx context.Context, c *holdfast.Client, key string) error {
	s, err := c.OnceEntry(ctx, key)
	if err != nil {
		return err
	}
	if s.State == holdfast.OnceScheduled {
		return a.scheduleStatus(ctx, c, s)
	}
	text, status := "unknown: nobody does it, and nobody has done it lately", exit.Not
	switch s.State {
	case holdfast.OnceDone:
		text, status = fmt.Sprintf("done, and counts as done for another %s", render.Short(s.ExpiresIn)), exit.OK
	case holdfast.OnceInProgress:
		text, status = "in progress by "+render.Plain(s.Holder.String()), exit.Busy
		if s.Since > 0 {
			text += " for " + render.Short(s.Since)
		}
	}
	return a.answerWith(status, view.Once(s), fmt.Sprintf("%s is %s\n", render.Plain(key), text))
}

// onceForget deletes what was recorded of a key.
func (a *app) onceForget(ctx context.Context, c *holdfast.Client, key string) error {
	found, err := c.OnceForget(ctx, key)
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
	}{key, found}, render.Plain(key)+text)
}
