package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
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
and at least a third of its TTL is left; with 79 if the lease is lost or about to be: begin no
more work; with 69 if that process, or without one the store, does not answer.`,
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
			var waiters show.Waiters
			if len(lock.Live()) > 0 && !a.json {
				if waiters, err = waitersOf(ctx, c); err != nil {
					return err
				}
			}
			return a.answer(lock.Details(), show.Lock(lock, waiters, time.Now()))
		})
	cmd.Long = `Show prints the holders of NAME, the locks for which they wait, the first ten of its queue, the
latest breaks of the last 24 hours, and do-once work under this key. Times of day are local. --json has the whole queue and all breaks, but not the locks
for which holders wait: see holdfast ls --blocked.

The exit status is 0 even if the lock is free: for that, see holdfast check.`
	cmd.Example = `  holdfast show deploy
  holdfast show deploy --json | jq -r '.queue[] | "\(.host) \(.waiting_ms)"'`
	return cmd
}

// waitersOf returns which clients wait for which lock, as far as this client may know.
func waitersOf(ctx context.Context, c *holdfast.Client) (show.Waiters, error) {
	locks, err := contended(ctx, c, "")
	if errors.Is(err, holdfast.ErrUnsupported) || errors.Is(err, holdfast.ErrPermission) {
		return nil, nil
	}
	return show.WaitersOf(locks), err
}

// contended returns the locks for which clients wait, with their queues.
func contended(ctx context.Context, c *holdfast.Client, prefix string) (locks []lockinfo.LockState, err error) {
	for lock, err := range c.List(ctx, prefix) {
		if err == nil && lock.QueueLength > 0 && len(lock.Queue) == 0 { // a list may leave the queue out
			lock, err = c.Inspect(ctx, lock.Name)
		}
		if err != nil {
			return nil, err
		}
		if lock.QueueLength > 0 {
			locks = append(locks, lock)
		}
	}
	return locks, nil
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
	var verbose, blocked bool
	cmd := a.question("ls [PREFIX]", "List the locks that are held or waited for, all or those whose names begin with PREFIX", words(0, 1),
		func(ctx context.Context, c *holdfast.Client, args []string) error {
			if verbose {
				a.sayStore()
			}
			prefix := strings.Join(args, "")
			if blocked {
				return a.listBlocked(ctx, c, prefix)
			}
			return a.list(ctx, c, prefix)
		})
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also print the store, and what named it")
	cmd.Flags().BoolVar(&blocked, "blocked", false, "only locks with waiting clients, the longest wait first, and what their holders wait for")
	cmd.Aliases = []string{"list"}
	cmd.Long = `Ls prints a line for each holder of a lock.

  HELD FOR  how long ago it was granted; renewals do not count
  LEFT      when the lease ends unless its holder renews it
  QUEUE     how many clients wait for the lock
  MODE      shared, or 2 of 5 slots; empty if the lock is exclusive

A narrow terminal omits PROCESS, TOKEN and MODE, then REASON. To another program ls prints all
columns, separated by tabs.

With --blocked, WAITING has the number of waiting clients and the longest wait, and WAITS FOR
the locks that the holder itself waits for. A deadlock is a circle of such waits.`
	cmd.Example = `  holdfast ls deploy/
  holdfast ls --blocked
  holdfast ls --json | jq -r '.[] | select(.queue_length > 0) | .name'`
	return cmd
}

// list prints the locks in use.
func (a *app) list(ctx context.Context, c *holdfast.Client, prefix string) error {
	locks, err := show.All(c.List(ctx, prefix))
	if err != nil {
		return err
	}
	slices.SortFunc(locks, func(x, y lockinfo.LockState) int { return strings.Compare(x.Name, y.Name) })
	views := show.Each(locks, wire.LockOf)
	schedules, err := schedulesOf(ctx, c, locks, views)
	if err != nil {
		return err
	}
	a.sayNone(len(locks), "no lock is in use", prefix)
	text := show.Table(locks, show.WidthOf(a.stdout))
	if len(schedules) > 0 {
		text += "\n" + show.ScheduleTable(schedules)
	}
	return a.answer(views, text)
}

// listBlocked prints the locks for which clients wait.
func (a *app) listBlocked(ctx context.Context, c *holdfast.Client, prefix string) error {
	locks, err := contended(ctx, c, prefix)
	if err != nil {
		return err
	}
	a.sayNone(len(locks), "nobody waits for a lock", prefix)
	return a.answer(show.Each(locks, wire.WholeLockOf), show.Blocked(locks, show.WidthOf(a.stdout)))
}

// sayNone explains on a terminal why a list is empty.
func (a *app) sayNone(n int, text, prefix string) {
	if n > 0 || show.WidthOf(a.stdout) == 0 {
		return
	}
	if prefix != "" {
		text += fmt.Sprintf(" whose name begins with %q", prefix)
	}
	a.say("%s, in the store %s", text, a.choice.Public())
}

func (a *app) historyCommand() *cobra.Command {
	since := ""
	cmd := a.question("history NAME", "Show what happened to a lock in the last 24 hours", names(1, 1),
		func(ctx context.Context, c *holdfast.Client, args []string) error {
			now := time.Now()
			after, err := momentOf(since, now)
			if err != nil {
				return err
			}
			events, err := c.History(ctx, args[0])
			if errors.Is(err, holdfast.ErrUnsupported) {
				return exit.Errorf(exit.Config, "history of %q: %s", args[0], a.withoutHistory())
			}
			if err != nil {
				return err
			}
			events = slices.DeleteFunc(events, func(e holdfast.HistoryEvent) bool { return now.Add(-e.Ago).Before(after) })
			return a.answer(wire.HistoryOf(args[0], events), show.History(args[0], events, after, now))
		})
	cmd.Flags().StringVar(&since, "since", "24h", "only events since `TIME`: 03:00, or how long ago")
	cmd.Long = `History lists the events of NAME, oldest first: leases that were granted, released, lost or
broken, or that expired; clients that gave up waiting; do-once work. Times of day are local. A
line counts clients that came to wait, or left, between two other events; --json has each.

The store keeps events for 24 hours: of each name the latest 64 breaks, 64 events of waiters
and 64 others.

It is off unless holdfast.conf has the line history = 1, or the URL of the store has it:
  --store sqlite:///path/file.db?history=1
Commands without it record nothing. A quorum has no history.

The exit status is 0 even if there are no events, 78 if history is off. Others:
holdfast --help.`
	cmd.Example = `  holdfast history deploy
  holdfast history deploy --since 03:00
  holdfast history deploy --json | jq -r '.events[] | select(.event == "expired") | .holder.host'`
	return cmd
}

// momentOf returns the time that a text names: how long ago it was, or a time of day within the
// last 24 hours.
func momentOf(text string, now time.Time) (time.Time, error) {
	if d, err := store.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	clock, err := time.Parse("15:04", text)
	if err != nil {
		return now, usage("history: --since %q: want a time of day such as 03:00, or how long ago, such as 2h", text)
	}
	at := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, time.Local)
	if at.After(now) {
		at = at.AddDate(0, 0, -1)
	}
	return at, nil
}

// withoutHistory explains why there is no history, and what to do.
func (a *app) withoutHistory() string {
	url := a.choice.Public()
	switch scheme, _, _ := strings.Cut(url, ":"); {
	case strings.HasPrefix(scheme, "quorum"):
		return "a quorum has no history, and " + url + " is one"
	case strings.HasPrefix(scheme, "http"):
		return "the server at " + url + " has none: it must be started on a store that has history=1 in its URL"
	}
	with := "?history=1"
	if strings.Contains(url, "?") {
		with = "&history=1"
	}
	return "it is off: write the line history = 1 to /etc/holdfast.conf, or name the store as " + url + with + ", for all programs that use its locks"
}
