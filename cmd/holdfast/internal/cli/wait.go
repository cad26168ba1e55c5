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
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/held"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/polling"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/waitline"
	"github.com/holdfast-locks/holdfast/driver"
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
		Long: `Wait ends when nobody has the lock NAME or waits for it, and nothing keeps it
closed; with several names, when all of them are free at once. It takes nothing and
has no place in any queue: somebody else may have the lock by the time that it ends.
To do something under the lock, use run.

It looks now and then: after a wait of a second within 125 ms, after 20 s and more
within 2.5 s.

The exit status is
  0   it is free                       75  -w was over, and it is not
  64  wrong arguments                  77  the store refuses our rights
  69  the store cannot be reached      78  the run around this command has the lock`,
		Example: `  holdfast wait deploy && notify-send 'the deployment is over'
  holdfast wait -w 10m backup-a backup-b`,
		Args: names(1, driver.MaxBatch),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.limited = cmd.Flags().Changed("wait")
			return a.waitFor(cmd, &f, args)
		},
	}
	flags := cmd.Flags()
	durationVarP(flags, &f.wait, "wait", "w", 0, "wait at most `SECONDS` or a duration such as 1m30s; 0 is to look once")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "tell of each change while it waits")
	return a.withJSON(cmd)
}

// waitFor waits until all of these are free.
func (a *app) waitFor(cmd *cobra.Command, f *waitFlags, all []string) error {
	began := time.Now()
	a.quiet, a.wait = f.quiet, f.wait
	return a.ask(cmd, func(ctx context.Context, c *holdfast.Client) error {
		line := a.waitLine(f.quiet, f.verbose)
		defer line.End()
		defer a.screen.BeforeEnd(line.End)()
		outer := held.Parse(a.asked.Getenv(held.Variable))
		w := polling.Wait{
			Look: func(ctx context.Context) ([]driver.Lock, error) { return inspectAll(ctx, c, outer, all) },
			Tell: a.tellWait(line, f, began),
		}
		if f.limited {
			w.Until = began.Add(f.wait)
		}
		locks, free, err := w.Free(ctx)
		if err != nil {
			return err
		}
		line.End()
		v := wire.Wait{Free: free, WaitedMS: time.Since(began).Milliseconds(), Locks: make([]wire.Lock, len(locks))}
		var text strings.Builder
		for i, lock := range locks {
			v.Locks[i] = wire.LockOf(lock)
			text.WriteString(render.Line(lock))
		}
		if f.quiet {
			text.Reset()
		}
		status := exit.OK
		if !free {
			status = exit.Busy
		}
		return a.answerWith(status, v, text.String())
	})
}

// inspectAll looks at locks. One that a run around this command holds will not be
// free before this command has ended.
func inspectAll(ctx context.Context, c *holdfast.Client, outer held.Locks, all []string) (locks []driver.Lock, err error) {
	for _, name := range all {
		lock, err := c.Inspect(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, h := range lock.Live() {
			isOurs := func(l held.Lock) bool { return l.Name == name && l.Token == h.Token }
			if slices.ContainsFunc(outer, isOurs) {
				return nil, exit.With(exit.Config, fmt.Errorf("wait %q: the run around this command holds it, with token %d: "+
					"this command would wait for itself", name, h.Token))
			}
		}
		locks = append(locks, lock)
	}
	return locks, nil
}

// tellWait returns what tells the user of a wait: what is in the way, when that
// changes, and that the store does not answer.
func (a *app) tellWait(line *waitline.Line, f *waitFlags, began time.Time) func([]driver.Lock, error) {
	var last string
	var outage time.Time
	return func(locks []driver.Lock, err error) {
		switch {
		case errors.Is(err, driver.ErrUnavailable) && (f.limited || len(locks) > 0) && a.storeIsAway(err):
			outage = time.Now()
		case err == nil:
			a.storeIsBack(time.Since(outage))
		}
		i := slices.IndexFunc(locks, func(l driver.Lock) bool { return !polling.IsFree(l) })
		if i < 0 { // the wait is over, or has not begun
			return
		}
		s := stateOf(locks[i])
		s.Waited, s.Outage = time.Since(began), err
		if key := fmt.Sprint(s.Name, s.Holder, s.Released, s.Queue, err != nil); key != last {
			last = key
			line.Update(s)
		}
	}
}

// stateOf says what of a lock is in the way of whoever has no place in its queue.
func stateOf(lock driver.Lock) holdfast.WaitState {
	s := holdfast.WaitState{Name: lock.Name, Queue: lock.QueueLength}
	if len(lock.Holders) == 0 { // it is about to be handed over
		return s
	}
	h := lock.Holders[0]
	s.Holder, s.Since, s.ExpiresIn, s.Released, s.Foreign = h.Holder, h.Since, h.ExpiresIn, h.Released, h.Foreign()
	return s
}
