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
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
	"github.com/holdfast-locks/holdfast/driver"
)

// waiting translates the flags about the wait and the lease.
func (f *jobFlags) waiting(cmd *cobra.Command, j *runner.Job) error {
	verb, waits := verbOf(cmd), cmd.Flags().Changed("wait")
	switch {
	case f.busy < 0 || f.busy > 255:
		return usage("%s: -E %d: want a status from 0 to 255", verb, f.busy)
	case waits && f.noWait:
		return usage("%s: -n and -w exclude one another", verb)
	}
	if err := f.options(&j.Opts, waits); err != nil {
		return usage("%s: %w", verb, err)
	}
	j.Busy, j.Try = f.busy, f.noWait || waits && j.Opts.MaxWait == 0
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
func (s *session) work(ctx context.Context, f *jobFlags, job *runner.Job, do func() error) error {
	job.Signals = runner.Catch() // before there is a socket that would be left behind
	server, err := s.control(f, job)
	if err != nil {
		return err
	}
	defer server.Close()
	job.Control = server
	return s.take(ctx, f, job, do)
}

// take is work without a control socket, for commands that only take a lock.
func (s *session) take(ctx context.Context, f *jobFlags, job *runner.Job, do func() error) error {
	job.Warn = func(format string, arguments ...any) {
		if !f.quiet {
			s.say(format, arguments...)
		}
	}
	if job.Signals == nil {
		job.Signals = runner.Catch()
	}
	s.opener = unlessEnded(job.Signals, s.open)
	job.Line = s.waitLine(f.quiet, f.verbose)
	defer job.Line.End()
	job.Opts.OnWait = func(w holdfast.WaitState) {
		s.sayForeign(w)
		job.Line.Update(w)
		job.Status.Waiting(w)
	}
	s.quiet, s.wait, s.subject, s.observe = f.quiet, job.Opts.MaxWait, runner.Quoted(job.Names), s.observer(f.verbose)
	if job.Path != "" {
		s.holder.Program = show.Plain(filepath.Base(job.Path)) // without its arguments, which may be secret
	}
	s.onAway = func(since time.Time, err error) {
		job.Opts.OnWait(holdfast.WaitState{Name: strings.Join(job.Names, ", "), Waited: time.Since(since), Outage: err})
	}
	return s.withClient(ctx, func(c *holdfast.Client, choice store.Choice) error {
		if f.verbose {
			s.sayStore()
		}
		job.Opts.MaxWait = s.wait
		job.Client, job.Store, job.StoreEnv = c, choice.Public(), choice.Env
		job.Outer = runner.ParseHeld(s.getenv(runner.HeldVariable))
		return do()
	})
}

// hushed removes the message of err with --quiet, if another client has the lock.
func (f *jobFlags) hushed(err error) error {
	if e := (*exit.Error)(nil); f.quiet && errors.As(err, &e) && e.Status == f.busy {
		return &exit.Error{Status: e.Status}
	}
	return err
}

// reportTo opens the descriptor of --status-fd, if it was given, calls do, and reports how
// that ended. do sets the names of the job.
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

// reportFlagErrors reports wrong flags to --status-fd as well.
func (f *jobFlags) reportFlagErrors(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return f.reportTo(cmd, &runner.Job{}, func(*runner.Status) error { return flagError(cmd, err) })
	})
}

// observer reports outages to the user and, if verbose, what happens to the lock. It leaves
// out what the waiting line and the error of the command report.
func (s *session) observer(verbose bool) holdfast.Observer {
	return func(e holdfast.Event) {
		switch e.Kind {
		case holdfast.OutageBegan:
			s.storeIsAway(e.Err)
		case holdfast.OutageEnded:
			if e.Err == nil { // else it is the wait that has ended
				s.storeIsBack(e.Took)
			}
		case holdfast.Acquired, holdfast.Released, holdfast.RenewFailed, holdfast.Lost, holdfast.CleanupFailed, holdfast.LeaseLeft:
			if verbose && (e.Kind != holdfast.Released || e.Err == nil) {
				s.sayEvent(e)
			}
		}
	}
}

// control returns the control socket of a job. Having none is an error only for jobs that
// depend on it.
func (s *session) control(f *jobFlags, job *runner.Job) (*keeper.Server, error) {
	server, err := keeper.Listen(s.getenv)
	switch {
	case err == nil:
	case job.Opts.KeepAlive == holdfast.KeepAliveOff, job.Opts.StallAfter > 0:
		return nil, exit.With(exit.Config, fmt.Errorf("run: %w", err))
	case f.verbose:
		s.say("%v: holdfast extend and heartbeat do not work in this job", err)
	}
	return server, nil
}

// sayEvent reports what happened to a lock.
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

// unlessEnded returns an opener like open that a signal ends, even if it waits for the
// store.
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
