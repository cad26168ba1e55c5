package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire"
	"github.com/holdfast-locks/holdfast/wire/view"
)

// question returns a command that asks the store and changes nothing.
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
		Short: "Tell by the exit status whether a lock is held, or whether the lease of this script is",
		Long: `Check NAME tells whether anybody holds the lock NAME: 0 held, 1 not. Without NAME
it tells whether the lease of the environment is still good, in a command of
holdfast run or a script with holdfast acquire: 0, or 79 if it is lost.`,
		Example: `  holdfast check deploy || echo nobody deploys
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

// checkName tells whether anybody holds a lock.
func (a *app) checkName(ctx context.Context, c *holdfast.Client, name string, quiet bool) error {
	lock, err := c.Inspect(ctx, name)
	if err != nil {
		return err
	}
	text, status := render.Line(lock), exit.Not
	if quiet {
		text = ""
	}
	if len(lock.Live()) > 0 {
		status = exit.OK
	}
	return a.answerWith(status, wire.WholeLockOf(lock), text)
}

func (a *app) showCommand() *cobra.Command {
	cmd := a.question("show NAME", "Show who holds a lock, for how long, who waits for it, who lost it, and what was done once", names(1, 1),
		func(ctx context.Context, c *holdfast.Client, args []string) error {
			lock, err := view.Look(ctx, c, args[0])
			if err != nil {
				return err
			}
			if lock.Schedule != nil {
				return a.answer(lock.Details(), render.Lock(lock.Lock, lock.Once, lock.Broken)+render.Schedule(*lock.Schedule))
			}
			return a.answer(lock.Details(), render.Lock(lock.Lock, lock.Once, lock.Broken))
		})
	cmd.Long = `Show tells what the store knows of NAME: who holds it, in which mode and since when,
with host, process, user, program, reason and token; who waits, in the order of the
queue; who broke it in the last 24 hours, and why; what was done once under this key.
The exit status is 0 even if nobody holds it: holdfast check tells by its status.`
	cmd.Example = `  holdfast show deploy
  holdfast show deploy --json | jq -r '.queue[] | "\(.host) \(.waiting_ms)"'`
	return cmd
}

func (a *app) listCommand() *cobra.Command {
	var verbose bool
	cmd := a.question("ls [PREFIX]", "List the locks that are held or waited for, all or those whose names begin with PREFIX", words(0, 1),
		func(ctx context.Context, c *holdfast.Client, args []string) error {
			if verbose {
				a.sayStore()
			}
			var locks []driver.Lock
			for lock, err := range c.List(ctx, strings.Join(args, "")) {
				if err != nil {
					return err
				}
				locks = append(locks, lock)
			}
			slices.SortFunc(locks, func(x, y driver.Lock) int { return strings.Compare(x.Name, y.Name) })
			views := make([]wire.Lock, len(locks))
			for i, lock := range locks {
				views[i] = wire.LockOf(lock)
			}
			schedules, err := schedulesOf(ctx, c, locks, views)
			if err != nil {
				return err
			}
			text := render.Table(locks)
			if len(schedules) > 0 {
				text += "\n" + render.ScheduleTable(schedules)
			}
			return a.answer(views, text)
		})
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "tell which store it is, and who has named it")
	cmd.Aliases = []string{"list"}
	cmd.Example = `  holdfast ls deploy/
  holdfast ls --json | jq -r '.[] | select(.queue_length > 0) | .name'`
	return cmd
}
