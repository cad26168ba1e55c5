//go:build unix

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/notify"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

// An Election is a command that runs while this host leads, again and again.
// Opts.StallAfter is its watchdog.
type Election struct {
	Job

	// Terminal is set if this program was started from a terminal: HUP then ends it, and
	// does not reload the command.
	Terminal bool

	Pause   time.Duration         // after the first command that has ended; see holdfast.LeadOptions
	NewLine func() *show.WaitLine // of one wait
	Manager *notify.Manager       // gets the state of this program; may be nil
	Socket  *notify.Socket        // receives the messages of the command; may be nil
}

// A candidate is an election under way. One goroutine campaigns. The goroutine of Elect receives
// the signals, and runs the command under each lease.
type candidate struct {
	Election
	leases  chan *holdfast.Lease // to the goroutine of Elect
	worked  chan error           // from the goroutine of Elect: why the command has ended
	ended   *exit.Error          // set when a signal ends the election; used by the goroutine of Elect only
	running atomic.Pointer[running]
	line    atomic.Pointer[show.WaitLine] // of the present wait

	start     *supervise.Start // of the next command; used by the goroutine that has the lease or wants one
	lastError error            // why the last command has ended, for failed to report
}

// Elect campaigns for the lead, runs the command while this process leads, and campaigns again
// when the command or the lead has ended. A signal or a permanent error ends it. It returns nil
// or an *exit.Error with the exit status, which after a signal is the status of the command.
func Elect(ctx context.Context, j Election) error {
	j.verb, j.WaitChildren, j.Opts.WholeTTL = "elect", true, true
	j.reloads = !j.Terminal
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &candidate{Election: j, leases: make(chan *holdfast.Lease), worked: make(chan error)}
	c.Opts.OnWait, c.onEnd = c.waiting, c.stopping
	c.line.Store(c.NewLine())
	defer func() { c.line.Load().End() }()
	c.start = supervise.Prepare(nil) // the warden starts while this process waits
	c.Socket.Serve(c.heard)
	done, left := make(chan error, 1), make(chan struct{})
	go func() { // ends with ctx; it is awaited for as long as there is time
		defer close(left)
		done <- c.stand(ctx)
	}()
	next := func(waiting context.Context) (*holdfast.Lease, error) {
		defer context.AfterFunc(waiting, cancel)()
		select {
		case lease := <-c.leases:
			return lease, nil
		case err := <-done:
			c.start.Close()
			return nil, err
		}
	}
	for {
		lease, ended, err := unlessEnded(ctx, c.Signals, c.ends, endWithin, "elect: ended by a signal while it did not lead", next)
		switch {
		case lease != nil && ended != nil: // both came at once
			cancel()
			c.worked <- context.Canceled
			select {
			case <-left:
				c.start.Close()
			case <-time.After(time.Until(ended.EndBy)):
			}
			return ended
		case lease != nil:
			err := c.lead(lease)
			if own, ok := errors.AsType[*exit.Error](err); ok && own.KeepLock {
				return own
			}
			if c.ended != nil {
				cancel()
			}
			c.worked <- err
		case c.ended != nil && c.ended.Status == exit.OK:
			return nil
		case c.ended != nil:
			return c.ended
		case ended != nil:
			c.Manager.Tell("STOPPING=1", "STATUS=stopping")
			return ended
		default:
			return exit.FromStore(err)
		}
	}
}

// stand campaigns and leads again and again. It refuses to wait for a lock of a run around this
// one.
func (c *candidate) stand(ctx context.Context) error {
	return c.unlessBlocked(ctx, &c.Opts.OnWait, func(ctx context.Context) error {
		return c.Client.Lead(ctx, c.Names[0], &holdfast.LeadOptions{Acquire: c.Opts, Pause: c.Pause, Failed: c.failed}, c.work)
	})
}

// work hands the lease to the goroutine of Elect, which runs the command, and waits until the
// command has ended.
//
// INVARIANT I1, for processes: the lock is released when work returns, and not before.
func (c *candidate) work(ctx context.Context, lease *holdfast.Lease) error {
	select {
	case c.leases <- lease:
		return <-c.worked
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lead runs the command under a lease. It returns when no process of the command is left, or with
// an error that keeps the lock.
func (c *candidate) lead(lease *holdfast.Lease) error {
	c.line.Load().End()
	held := holdOf(lease)
	c.Manager.Tell("READY=1", fmt.Sprintf("STATUS=leading, with fencing token %d", lease.Token()))
	acquired := time.Now()
	tree, err := c.start.Run(c.command(held, nil))
	if err != nil {
		c.lastError = fmt.Errorf("elect %s: %w", c.Args[0], err)
		return c.lastError
	}
	w := newWatch(c.Job, held, acquired, tree)
	stop := c.follow(w)
	w.loop()
	stop()
	c.lastError = c.outcome(w)
	return c.lastError
}

// outcome returns why the command has ended; nil if a signal ended the election.
func (c *candidate) outcome(w *watch) error {
	if err := w.notEnded(); err != nil {
		return err
	}
	status := w.tree.Status
	keyboard := status == exit.Signal(syscall.SIGINT) || status == exit.Signal(syscall.SIGQUIT)
	switch {
	case w.verdict == nil && (c.ended != nil || c.Terminal && keyboard): // Ctrl-C goes to the command, but is meant for this process too
		c.ended = &exit.Error{Status: status}
		return nil
	case w.verdict != nil && !errors.Is(w.verdict, holdfast.ErrStalled):
		return lostLead{w.verdict}
	case w.verdict != nil:
		return w.verdict
	}
	return fmt.Errorf("elect %s: the command has ended with status %d", Quoted(c.Names), status)
}

// stopping notes that a signal ends the election when the command has ended.
func (c *candidate) stopping(sig syscall.Signal) {
	c.Manager.Tell("STOPPING=1", "STATUS=stopping")
	if c.ended == nil {
		c.ended = &exit.Error{Status: exit.Signal(sig)}
	}
}

// A lostLead says why a command was stopped. It is holdfast.ErrLost even if the lease was live
// until then.
type lostLead struct{ why *exit.Error }

func (l lostLead) Error() string { return l.why.Error() }

// Is makes errors.Is(err, holdfast.ErrLost) true.
func (lostLead) Is(target error) bool { return target == holdfast.ErrLost }

// failed reports why the command or the lead has ended, and what happens next.
func (c *candidate) failed(err error, pause time.Duration) {
	if err, c.lastError = cmp.Or(c.lastError, err), nil; err == nil {
		return
	}
	next := "standing for election again"
	if pause > 0 {
		next = fmt.Sprintf("standing for election again in %s", pause.Round(10*time.Millisecond))
	}
	c.Warn("%v; %s", err, next)
	c.Manager.Status("%v; %s", err, next)
	c.line.Store(c.NewLine())
	c.start.Close() // in case the command could not be started
	c.start = c.start.Next()
}

// waiting reports the state of the wait.
func (c *candidate) waiting(s holdfast.WaitState) {
	c.line.Load().Update(s)
	switch {
	case s.Outage != nil:
		c.Manager.Status("waiting: the store does not answer")
		return
	case s.Place == 0:
		c.Manager.Tell("READY=1", "STATUS=waiting: another host leads")
		return
	}
	c.Manager.Tell("READY=1", fmt.Sprintf("STATUS=waiting: number %d of %d, %s leads", s.Place, max(s.Queue, s.Place), s.Holder))
}
