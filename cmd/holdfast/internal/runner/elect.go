//go:build unix

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
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
	Manager *supervise.Manager    // gets the state of this program; may be nil
	Socket  *supervise.Socket     // where the command tells how it is; may be nil
}

// A candidate is an election under way. The goroutine of Elect has the signals, and
// another one campaigns and leads.
type candidate struct {
	Election
	cancel context.CancelFunc
	stuck  chan error // reports that the lock must not be released

	office                     // shared by the two and the goroutine of the command's messages
	start     *supervise.Start // of the next command
	lastError error            // why the last command has ended; told by the next failure
}

// Elect campaigns for the lead, runs the command while this process leads, and campaigns
// again when the command or the lead has ended. A signal ends it, or a permanent error. It
// returns nil or an *exit.Error with the exit status; after a signal that is the status of
// the command.
func Elect(ctx context.Context, j Election) error {
	j.verb, j.WaitChildren, j.Opts.WholeTTL = "elect", true, true
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &candidate{Election: j, cancel: cancel, stuck: make(chan error)}
	c.wait(c.NewLine())
	defer c.done()
	c.Opts.OnWait = c.waiting
	c.start = supervise.Prepare(nil) // it starts while this process waits
	c.Socket.Serve(c.heard)
	done := make(chan error, 1)
	go func() { done <- c.stand(ctx) }() // ends with ctx; it is awaited for as long as there is time
	var late <-chan time.Time
	for {
		select {
		case s := <-c.Signals:
			if c.signal(s.(syscall.Signal)) {
				late = time.After(endWithin)
			}
		case err := <-c.stuck:
			return err
		case err := <-done:
			c.start.Close()
			if ending, ended := c.ending(); ended {
				return ending
			}
			return exit.FromStore(err)
		case <-late:
			ending, _ := c.ending()
			return ending
		}
	}
}

// stand leads again and again. It refuses to wait for a run around this one.
func (c *candidate) stand(ctx context.Context) error {
	want := wantOf(&c.Opts, false, c.Names...)
	return c.Outer.Take(ctx, c.Client, want, &c.Opts.OnWait, func(ctx context.Context) error {
		return c.Client.Lead(ctx, c.Names[0], &holdfast.LeadOptions{Acquire: c.Opts, Pause: c.Pause, Failed: c.failed}, c.lead)
	})
}

// lead runs the command under a lease, and returns when nothing of it is left.
//
// INVARIANT I1, for processes: the lock is released when this returns, and not
// before.
func (c *candidate) lead(ctx context.Context, lease *holdfast.Lease) error {
	c.done()
	job, held := c.Job, holdOf(lease)
	if job.Signals = c.begin(); job.Signals == nil {
		return ctx.Err() // a signal came first
	}
	defer c.end()
	c.Manager.Tell("READY=1", fmt.Sprintf("STATUS=leading, with fencing token %d", lease.Token()))
	acquired := time.Now()
	tree, err := c.start.Run(job.command(held, nil))
	if err != nil {
		c.lastError = fmt.Errorf("elect %s: %w", c.Args[0], err)
		return c.lastError
	}
	w := newWatch(job, held, acquired, tree)
	stop := c.follow(w)
	w.loop()
	stop()
	tree.Close()
	c.lastError = c.outcome(ctx, w)
	return c.lastError
}

// outcome returns why the command has ended; nil if a signal ended the election.
func (c *candidate) outcome(ctx context.Context, w *watch) error {
	if err := w.notEnded(); err != nil {
		c.stuck <- err
		select {} // until the program ends: returning would release the lock
	}
	status := w.tree.Status()
	switch keyboard := status == exit.Signal(int(syscall.SIGINT)) || status == exit.Signal(int(syscall.SIGQUIT)); {
	case c.Terminal && keyboard && w.verdict == nil: // Ctrl-C is the command's, and is meant for all
		c.endWith(status)
		return nil
	case ctx.Err() != nil && w.verdict == nil:
		c.endWith(status)
		return nil
	case w.verdict != nil && !errors.Is(w.verdict, holdfast.ErrStalled):
		return lostLead{w.verdict}
	case w.verdict != nil:
		return w.verdict
	}
	return fmt.Errorf("elect %s: the command has ended with status %d", Quoted(c.Names), status)
}

// A lostLead is why a command was stopped. It is holdfast.ErrLost, even if the lease
// was live to the end.
type lostLead struct{ why *exit.Error }

func (l lostLead) Error() string { return l.why.Error() }

// Is makes errors.Is(err, holdfast.ErrLost) true.
func (lostLead) Is(target error) bool { return target == holdfast.ErrLost }

// failed tells that the command, or the lead, has ended, and what is done about it.
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
	c.wait(c.NewLine())
	c.start.Close() // if it could not be run
	c.start = c.start.Next(nil)
}

// waiting reports the state of the wait.
func (c *candidate) waiting(s holdfast.WaitState) {
	c.line.Update(s) // only this goroutine sets it
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

// signal passes a signal on to the command, and ends the election if it is meant to. It
// reports whether it ends it while there is no command: then it has to be soon.
func (c *candidate) signal(sig syscall.Signal) (soon bool) {
	ends := supervise.Ends(sig) && (sig != syscall.SIGHUP || c.Terminal)
	working := c.pass(sig, ends)
	if !ends {
		return false
	}
	c.Manager.Tell("STOPPING=1", "STATUS=stopping")
	c.cancel()
	return !working
}
