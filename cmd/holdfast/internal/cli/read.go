package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/internal/view"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// question returns a command that opens the store, calls f and has --json.
func (a *app) question(use, short string, args cobra.PositionalArgs, f func(context.Context, *holdfast.Client, []string) error) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   use,
		Short: short,
		Args:  args,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd, func(ctx context.Context, c *holdfast.Client) error { return f(ctx, c, args) })
		},
	})
}

func (a *app) checkCommand() *cobra.Command {
	var quiet bool
	cmd := a.withJSON(&cobra.Command{
		Use:   "check [NAME]",
		Short: "Test whether a lock is held, or whether the lease of this script is good",
		Long: `Check NAME exits with 0 if the lock NAME is held, and with 1 if not.

Without NAME it tests the lease in the environment, in a command of holdfast run or a script
with holdfast acquire. It exits with 0 if the lease is held, the process that keeps it runs,
and at least a third of its TTL is left; with 79 if the lease is lost or about to be, so that
the caller must begin no more work; with 69 if that process, or the store if there is no such
process, does not answer.`,
		Example: `  holdfast check deploy || echo 'no deployment is running'
  holdfast check -q || exit`,
		Args: names(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.checkLease(cmd.Context(), quiet)
			}
			return a.ask(cmd, func(ctx context.Context, c *holdfast.Client) error { return a.checkName(ctx, c, args[0], quiet) })
		},
	})
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing")
	return cmd
}

// checkName reports whether a lock is held.
func (a *app) checkName(ctx context.Context, c *holdfast.Client, name string, quiet bool) error {
	lock, err := c.Inspect(ctx, name)
	if err != nil {
		return err
	}
	text, status := show.LockLine(lock), exit.Not
	if quiet {
		text = ""
	}
	if len(lock.Live()) > 0 {
		status = exit.OK
	}
	return a.answerWith(status, wire.WholeLockOf(lock), text)
}

func (a *app) showCommand() *cobra.Command {
	cmd := a.question("show NAME", "Show the holders of a lock, its queue, recent breaks, and do-once work", names(1, 1),
		func(ctx context.Context, c *holdfast.Client, args []string) error {
			lock, err := view.Look(ctx, c, args[0])
			if err != nil {
				return err
			}
			if lock.Schedule != nil {
				return a.answer(lock.Details(), show.Lock(lock.LockState, lock.Once, lock.Broken)+show.Schedule(*lock.Schedule))
			}
			return a.answer(lock.Details(), show.Lock(lock.LockState, lock.Once, lock.Broken))
		})
	cmd.Long = `Show prints the holders of NAME, its queue in order, the breaks of the last 24 hours with
author and reason, and do-once work under this key. The exit status is 0 even if the lock is
free: holdfast check has a status for that.`
	cmd.Example = `  holdfast show deploy
  holdfast show deploy --json | jq -r '.queue[] | "\(.host) \(.waiting_ms)"'`
	return cmd
}

// schedulesOf returns the schedules whose leader holds one of these locks, and adds them to
// the views of the locks.
func schedulesOf(ctx context.Context, c *holdfast.Client, locks []lockinfo.LockState, views []wire.Lock) (found []holdfast.OnceRecord, err error) {
	for i, lock := range locks {
		name, ok := strings.CutSuffix(lock.Name, holdfast.ScheduleSuffix)
		if !ok || name == "" {
			continue
		}
		e, err := c.Records().Once(ctx, name)
		switch {
		case errors.Is(err, holdfast.ErrUnsupported):
			return nil, nil
		case err != nil:
			return nil, err
		case e.State == holdfast.OnceScheduled:
			found = append(found, e)
			views[i].Schedule = view.Entry(e)
		}
	}
	return found, nil
}

func (a *app) listCommand() *cobra.Command {
	var verbose bool
	cmd := a.question("ls [PREFIX]", "List the locks that are held or waited for, all or those whose names begin with PREFIX", words(0, 1),
		func(ctx context.Context, c *holdfast.Client, args []string) error {
			if verbose {
				a.sayStore()
			}
			var locks []lockinfo.LockState
			for lock, err := range c.List(ctx, strings.Join(args, "")) {
				if err != nil {
					return err
				}
				locks = append(locks, lock)
			}
			slices.SortFunc(locks, func(x, y lockinfo.LockState) int { return strings.Compare(x.Name, y.Name) })
			views := make([]wire.Lock, len(locks))
			for i, lock := range locks {
				views[i] = wire.LockOf(lock)
			}
			schedules, err := schedulesOf(ctx, c, locks, views)
			if err != nil {
				return err
			}
			text := show.Table(locks)
			if len(schedules) > 0 {
				text += "\n" + show.ScheduleTable(schedules)
			}
			return a.answer(views, text)
		})
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also print which store it is, and what has chosen it")
	cmd.Aliases = []string{"list"}
	cmd.Example = `  holdfast ls deploy/
  holdfast ls --json | jq -r '.[] | select(.queue_length > 0) | .name'`
	return cmd
}

func (a *app) historyCommand() *cobra.Command {
	cmd := a.question("history NAME", "Show what happened to a lock in the last 24 hours", names(1, 1),
		func(ctx context.Context, c *holdfast.Client, args []string) error {
			events, err := c.History(ctx, args[0])
			if errors.Is(err, holdfast.ErrUnsupported) {
				return exit.With(exit.Config, fmt.Errorf("history of %q: %s", args[0], a.withoutHistory()))
			}
			if err != nil {
				return err
			}
			return a.answer(wire.HistoryOf(args[0], events), show.History(args[0], events))
		})
	cmd.Long = `History lists the events of NAME, oldest first: leases that were granted, released, lost or
broken, or that expired; clients that gave up waiting; do-once work that was done. The store
keeps the latest 64 events of each name, for 24 hours.

It is off unless the URL of the store has history=1, as in
  --store sqlite:///path/file.db?history=1
Commands without it record nothing: put it in $HOLDFAST_STORE or /etc/holdfast.conf. A quorum
has no history.

The exit status is 0 even if there are no events, 78 if history is off, or one of those in
holdfast --help.`
	cmd.Example = `  holdfast history deploy
  holdfast history deploy --json | jq -r '.events[] | select(.event == "expired") | .holder.host'`
	return cmd
}

// withoutHistory explains why there is no history, and what to do.
func (a *app) withoutHistory() string {
	store := a.choice.Public()
	switch scheme, _, _ := strings.Cut(store, ":"); {
	case strings.HasPrefix(scheme, "quorum"):
		return "a quorum has no history, and " + store + " is one"
	case strings.HasPrefix(scheme, "http"):
		return "the server at " + store + " has none: it must be started on a store that has history=1 in its URL"
	}
	with := "?history=1"
	if strings.Contains(store, "?") {
		with = "&history=1"
	}
	return "it is off: name the store as " + store + with + ", in all programs that use its locks"
}
