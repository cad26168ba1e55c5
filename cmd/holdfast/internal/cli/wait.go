package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// waitFlags are the flags of wait as they were given.
type waitFlags struct {
	wait           time.Duration
	limited        bool // wait was given
	quiet, verbose bool
}

func (a *app) waitCommand() *cobra.Command {
	var f waitFlags
	cmd := &cobra.Command{
		Use:   "wait NAME...",
		Short: "Wait until a lock is free, without taking it",
		Long: `Wait ends when the lock NAME has no holder and no queue, and is not kept closed; with several
names, when all are free at the same time. It takes no lock and no place in a queue:
to work under the lock, use run.

It polls every 50 ms at first, and every 2 s after a long wait.

The exit status is 0 if it is free, 75 if it was not within -w, 78 if the run around this
command holds it. Others: holdfast --help.`,
		Example: `  holdfast wait deploy && notify-send 'the deployment has ended'
  holdfast wait -w 10m backup-a backup-b`,
		Args: names(1, driver.MaxBatch),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.limited = cmd.Flags().Changed("wait")
			return untilSignal(cmd.Context(), func(ctx context.Context) error { return a.waitFor(ctx, &f, args) })
		},
	}
	flags := cmd.Flags()
	durationVarP(flags, &f.wait, "wait", "w", 0, anyTime, "wait at most `SECONDS`, or e.g. 1m30s; 0 looks once")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "report each change while it waits")
	return a.withJSON(cmd)
}

// waitFor waits until all these locks are free.
func (a *app) waitFor(ctx context.Context, f *waitFlags, all []string) error {
	began := time.Now()
	s := a.session()
	s.quiet, s.wait = f.quiet, f.wait
	return s.ask(ctx, func(ctx context.Context, c *holdfast.Client) error {
		line := a.waitLine(f.quiet, f.verbose)
		defer line.End()
		outer := runner.ParseHeld(a.getenv(runner.HeldVariable))
		w := show.Wait{
			Look: func(ctx context.Context) ([]lockinfo.LockState, error) { return inspectAll(ctx, c, outer, all) },
			Tell: s.tellWait(line, f, began),
		}
		if f.limited {
			w.Until = began.Add(f.wait)
		}
		locks, free, err := w.Free(ctx)
		if err != nil {
			return err
		}
		line.End()
		v := wire.Wait{Free: free, WaitedMS: time.Since(began).Milliseconds(), Locks: show.Each(locks, wire.LockOf)}
		text := strings.Join(show.Each(locks, show.LockLine), "")
		if f.quiet {
			text = ""
		}
		status := exit.OK
		if !free {
			status = exit.Busy
		}
		return a.answerWith(status, v, text)
	})
}

// inspectAll reads the locks. It refuses a lock that a run around this command holds: such a lock
// will not be free before this command has ended.
func inspectAll(ctx context.Context, c *holdfast.Client, outer runner.Held, all []string) (locks []lockinfo.LockState, err error) {
	for _, name := range all {
		lock, err := c.Inspect(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, h := range lock.Live() {
			isOurs := func(l runner.HeldLock) bool { return l.Name == name && l.Token == h.Token }
			if slices.ContainsFunc(outer, isOurs) {
				return nil, exit.Errorf(exit.Config, "wait %q: the run around this command holds it, with token %d: "+
					"this command would wait for itself", name, h.Token)
			}
		}
		locks = append(locks, lock)
	}
	return locks, nil
}

// tellWait returns a function that shows the user what blocks the wait, whenever that changes,
// and outages of the store.
func (s *session) tellWait(line *show.WaitLine, f *waitFlags, began time.Time) func([]lockinfo.LockState, error) {
	var last string
	var outage time.Time
	return func(locks []lockinfo.LockState, err error) {
		switch {
		case show.IsOutage(err) && (f.limited || len(locks) > 0) && s.storeIsAway(err):
			outage = time.Now()
		case err == nil:
			s.storeIsBack(time.Since(outage))
		}
		i := slices.IndexFunc(locks, show.IsTaken)
		if i < 0 || f.limited && f.wait <= 0 { // there is no wait, or it has ended, or has not begun
			return
		}
		state := stateOf(locks[i])
		state.Waited, state.Outage = time.Since(began), err
		if key := fmt.Sprint(state.Name, state.Holder, state.Released, state.Queue, err != nil); key != last {
			last = key
			line.Update(state)
		}
	}
}

// stateOf returns the wait state of a client that has no place in the queue.
func stateOf(lock lockinfo.LockState) holdfast.WaitState {
	s := holdfast.WaitState{Name: lock.Name, Queue: lock.QueueLength}
	if len(lock.Holders) == 0 { // the lock is about to be handed over
		return s
	}
	h := lock.Holders[0]
	s.Holder, s.Since, s.ExpiresIn, s.Released, s.Foreign = h.Holder, h.Since, h.ExpiresIn, h.Released, h.Foreign()
	return s
}
