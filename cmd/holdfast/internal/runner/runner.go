//go:build unix

// Package runner runs a command under a lock: it acquires the lock, supervises the command,
// stops it before another client can get the lock, and releases the lock when no process of
// the command is left.
package runner

import (
	"cmp"
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

// OnLost is what happens to the command when the lock is lost.
type OnLost int

const (
	Term   OnLost = iota // TERM, and KILL after KillAfter
	Kill                 // KILL
	Ignore               // nothing but a warning
)

// A Job is a command to run under a lock.
type Job struct {
	verb    string               // the holdfast command, as messages name it
	reloads bool                 // HUP reloads the command, and does not end it
	onEnd   func(syscall.Signal) // called with a signal that ends the job; may be nil

	Client *holdfast.Client
	Names  []string // acquired all together; a OnceJob has one
	Try    bool     // do not wait for the lock
	Opts   holdfast.AcquireOptions

	Store    string   // URL without credentials, for the command's environment
	StoreEnv []string // more entries for it: holdfast commands within it find the store by them
	Outer    Held     // the locks of the runs around this one

	Control *keeper.Server // serves holdfast commands within the job; may be nil
	Socket  string         // the socket of a keeper, which replaces Control

	Start     *supervise.Start // starts the command; a OnceJob has none
	Path      string           // the command's file; see LookPath
	Args      []string         // the command and its arguments
	OnLost    OnLost
	KillAfter time.Duration // between TERM and KILL
	Busy      int           // exit status if another client has the lock

	// WaitChildren keeps the lock after the command has ended by itself until the processes that
	// it left have ended, too.
	WaitChildren bool

	Line    *show.WaitLine                        // is ended before the command starts; may be nil
	Signals chan os.Signal                        // see Catch
	Status  *Status                               // where events are reported; may be nil
	Warn    func(format string, arguments ...any) // tells the user
}

// ends reports whether a signal asks the job to end.
func (j *Job) ends(sig syscall.Signal) bool {
	return supervise.Ends(sig) && (sig != syscall.SIGHUP || !j.reloads)
}

// Await returns OnceOptions.Await for a OnceJob.
func (j *Job) Await() time.Duration {
	if j.Try {
		return 0
	}
	return cmp.Or(j.Opts.MaxWait, holdfast.Forever)
}

// Run runs the job and returns nil if the command ended with status 0, or an
// *exit.Error with the status to exit with.
func Run(ctx context.Context, j Job) error {
	j.verb = "run"
	held, err := j.acquire(ctx)
	j.Line.End()
	if err != nil {
		return err
	}
	acquired := time.Now()
	j.Status.acquired(held)
	tree, err := j.Start.Run(j.command(held, nil))
	if err != nil {
		_ = j.release(ctx, held)
		return exit.Errorf(execStatus(err), "run %s: %w", j.Args[0], err)
	}
	w := newWatch(j, held, acquired, tree)
	w.loop()
	return w.end(ctx)
}

// Acquire takes the one lock of the job, as Run does, but does not run a command under it. verb
// is the holdfast command, as messages name it. A signal ends the wait.
func (j Job) Acquire(ctx context.Context, verb string) (*holdfast.Lease, error) {
	j.verb = verb
	taken, err := j.acquire(ctx)
	if err != nil {
		return nil, err
	}
	return taken.first(), nil
}

// Variables returns the environment entries of processes that work under the lease.
func (j Job) Variables(l *holdfast.Lease) []string { return j.variables(holdOf(l)) }

// command returns the command to run under a hold.
func (j Job) command(held hold, stdout *os.File) supervise.Command {
	c := supervise.Command{
		Path: j.Path, Args: j.Args, Env: environment(os.Environ(), j, held), Mark: mark(held), Stdout: stdout, Signals: j.Signals,
	}
	if j.OnLost != Ignore {
		c.KillAt = j.killBy(held)
	}
	return c
}

// acquire takes the locks. A signal that asks to end ends the wait.
func (j Job) acquire(ctx context.Context) (hold, error) {
	within := endWithin
	if len(j.Names) > 1 {
		within = releaseWithin
	}
	held, ended, err := unlessEnded(ctx, j.Signals, supervise.Ends, within, j.verb+": ended by a signal while waiting for the lock", j.take)
	switch {
	case ended != nil:
		if err == nil {
			ctx, cancel := context.WithDeadline(ctx, ended.EndBy)
			defer cancel()
			_ = j.release(ctx, held)
		}
		return hold{}, ended
	case errors.Is(err, holdfast.ErrHeld):
		return hold{}, &exit.Error{Status: j.Busy, Err: err, Engine: true}
	}
	return held, exit.FromStore(err)
}

// take returns leases that have their whole TTL: a shorter one might end before a command can be
// stopped. It refuses to wait for a lock of a run around this one.
func (j Job) take(ctx context.Context) (taken hold, err error) {
	j.Opts.WholeTTL = !j.Try
	err = j.unlessBlocked(ctx, &j.Opts.OnWait, func(ctx context.Context) error {
		taken, err = j.takeAll(ctx)
		return err
	})
	return taken, err
}

// takeAll takes all locks of the job, or none.
func (j Job) takeAll(ctx context.Context) (hold, error) {
	one, several := j.Client.Acquire, j.Client.AcquireAll
	if j.Try {
		one, several = j.Client.TryAcquire, j.Client.TryAcquireAll
	}
	if len(j.Names) > 1 {
		all, err := several(ctx, j.Names, &j.Opts)
		if err != nil {
			return hold{}, err
		}
		return holdOfAll(all, j.Names), nil
	}
	lease, err := one(ctx, j.Names[0], &j.Opts)
	if err != nil {
		return hold{}, err
	}
	return holdOf(lease), nil
}

// release releases the locks, even if ctx has ended. It returns why one was lost before, or nil.
func (j Job) release(ctx context.Context, held hold) (lost error) {
	err := held.Release(ctx)
	switch {
	case errors.Is(err, holdfast.ErrLost):
		return err
	case err != nil:
		j.Warn("%v; the lock is free when its TTL ends", err)
	default:
		j.Status.released(held)
	}
	return nil
}
