//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/control"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/held"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
	"github.com/holdfast-locks/holdfast/driver"
)

// waiting translates the flags about the wait, and what is to be said of the lock.
func (f *jobFlags) waiting(cmd *cobra.Command, j *runner.Job) error {
	verb, waits := cmd.Name(), cmd.Flags().Changed("wait")
	switch {
	case f.busy < 0 || f.busy > 255:
		return usage("%s: -E %d: want a status from 0 to 255", verb, f.busy)
	case waits && f.noWait:
		return usage("%s: -n and -w exclude one another", verb)
	}
	if err := f.options(&j.Opts, waits); err != nil {
		return usage("%s: %w", verb, err)
	}
	j.Busy, j.Try = f.busy, f.noWait || waits && j.Opts.Wait == 0
	return nil
}

// stopping translates the flags about the end of the command.
func (f *jobFlags) stopping(cmd *cobra.Command, j *runner.Job) error {
	kinds := map[string]runner.OnLost{"term": runner.Term, "kill": runner.Kill, "ignore": runner.Ignore}
	kind, ok := kinds[f.onLost]
	if !ok {
		return usage("%s: --on-lost %q: want term, kill or ignore", cmd.Name(), f.onLost)
	}
	j.OnLost, j.WaitChildren = kind, f.children
	ttl := runner.TTL(j.Opts)
	if ttl < runner.MinTTL {
		return usage("%s: --ttl %s: want at least %s, or there is no time to stop the command when the lock is lost", cmd.Name(), ttl, runner.MinTTL)
	}
	var err error
	j.KillAfter, err = killAfter(cmd, f.killAfter, ttl)
	return err
}

// work opens the store for the job and calls do.
func (a *app) work(ctx context.Context, f *jobFlags, job *runner.Job, do func() error) error {
	job.Signals = runner.Catch() // before there is a socket that would stay
	server, err := a.control(f, job)
	if err != nil {
		return err
	}
	defer server.Close()
	job.Control = server
	return a.take(ctx, f, job, do)
}

// take is work for those who only take a lock.
func (a *app) take(ctx context.Context, f *jobFlags, job *runner.Job, do func() error) error {
	job.Warn = func(format string, arguments ...any) {
		if !f.quiet {
			a.say(format, arguments...)
		}
	}
	if job.Signals == nil {
		job.Signals = runner.Catch()
	}
	a.opener = unlessEnded(job.Signals, a.open)
	job.Line = a.waitLine(f.quiet, f.verbose)
	defer job.Line.End()
	job.Opts.OnWait = func(s holdfast.WaitState) {
		a.sayForeign(s)
		job.Line.Update(s)
		job.Status.Waiting(s)
	}
	a.quiet, a.wait, a.subject = f.quiet, job.Opts.Wait, runner.Quoted(job.Names)
	if job.Path != "" {
		a.holder.Program = render.Plain(filepath.Base(job.Path)) // and none of its arguments, which may be secret
	}
	a.onAway = func(since time.Time, err error) {
		job.Opts.OnWait(holdfast.WaitState{Name: strings.Join(job.Names, ", "), Waited: time.Since(since), Outage: err})
	}
	return a.withClient(ctx, a.observer(f.verbose), func(c *holdfast.Client, choice store.Choice) error {
		if f.verbose {
			a.sayStore()
		}
		job.Opts.Wait = a.wait
		job.Client, job.Store, job.StoreEnv = c, choice.Public(), choice.Env
		job.Outer = held.Parse(a.asked.Getenv(held.Variable))
		return do()
	})
}

// hushed is err without its words if --quiet says so: when somebody else has the
// lock.
func (f *jobFlags) hushed(err error) error {
	if e := (*exit.Error)(nil); f.quiet && errors.As(err, &e) && e.Status == f.busy {
		return &exit.Error{Status: e.Status}
	}
	return err
}

// reportTo opens the descriptor of --status-fd, if it was given, calls do and
// reports to it how that has ended. The job has its names by then.
func (f *jobFlags) reportTo(cmd *cobra.Command, job *runner.Job, do func(*runner.Status) error) error {
	var status *runner.Status
	if cmd.Flags().Changed("status-fd") {
		var err error
		if status, err = runner.OpenStatus(f.statusFD); err != nil {
			return usage("%s: --status-fd: %w", cmd.Name(), err)
		}
	}
	err := do(status)
	status.End(job.Names, err)
	return err
}

// reportFlagErrors has wrong flags reported to --status-fd as well.
func (f *jobFlags) reportFlagErrors(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return f.reportTo(cmd, &runner.Job{}, func(*runner.Status) error { return flagError(cmd, err) })
	})
}

// observer tells the user of an outage and, if verbose, of what happens to the lock, but
// for what the waiting line and the error of the command say.
func (a *app) observer(verbose bool) holdfast.Observer {
	return func(e holdfast.Event) {
		switch e.Kind {
		case holdfast.OutageBegan:
			a.storeIsAway(e.Err)
		case holdfast.OutageEnded:
			if e.Err == nil { // else it is the wait that has ended
				a.storeIsBack(e.Took)
			}
		case holdfast.Acquired, holdfast.Released, holdfast.RenewFailed, holdfast.Lost, holdfast.CleanupFailed, holdfast.Left:
			if verbose && (e.Kind != holdfast.Released || e.Err == nil) {
				a.sayEvent(e)
			}
		}
	}
}

// control returns the socket for the commands of a job. Without one they cannot
// speak to it, which only matters to jobs that depend on that.
func (a *app) control(f *jobFlags, job *runner.Job) (*control.Server, error) {
	server, err := control.Listen(a.asked.Getenv)
	switch {
	case err == nil:
	case job.Opts.KeepAlive == holdfast.KeepAliveOff, job.Opts.Progress > 0:
		return nil, exit.With(exit.Config, fmt.Errorf("run: %w", err))
	case f.verbose:
		a.say("%v: holdfast extend and progress do not work in this job", err)
	}
	return server, nil
}

// sayEvent says what has happened to a lock.
func (a *app) sayEvent(e holdfast.Event) {
	switch e.Kind {
	case holdfast.Acquired:
		a.say("acquired %q with fencing token %d after %s", e.Name, e.Token, e.Waited.Round(time.Millisecond))
	case holdfast.Released:
		a.say("released %q after %s", e.Name, e.Held.Round(time.Millisecond))
	default:
		a.say("%s %q: %v", e.Kind, e.Name, e.Err)
	}
}

// unlessEnded returns open for a command that signals end while it opens its store,
// or waits for it.
func unlessEnded(signals <-chan os.Signal, open opener) opener {
	return func(ctx context.Context) (driver.Engine, store.Choice, error) {
		type opened struct {
			driver.Engine
			store.Choice
		}
		o, ended, err := runner.UnlessEnded(ctx, signals, "ended by a signal while opening the store", func(ctx context.Context) (o opened, err error) {
			o.Engine, o.Choice, err = open(ctx)
			return o, err
		})
		if ended != nil {
			return nil, o.Choice, ended
		}
		return o.Engine, o.Choice, err
	}
}
