//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/control"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/held"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
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

// work opens the store for the job and calls do. With --quiet nothing is said if
// it ends with the status busy.
func (a *app) work(ctx context.Context, f *jobFlags, job *runner.Job, busy int, do func() error) error {
	job.Warn = func(format string, arguments ...any) {
		if !f.quiet {
			a.say(format, arguments...)
		}
	}
	server, err := a.control(f, job)
	if err != nil {
		return err
	}
	defer server.Close()
	job.Control = server
	a.quiet, a.wait = f.quiet, job.Opts.Wait
	a.holder.Program = render.Plain(filepath.Base(job.Path)) // and none of its arguments, which may be secret
	err = a.withClient(ctx, a.observer(f.verbose, job.Status), func(c *holdfast.Client, choice store.Choice) error {
		job.Opts.Wait = a.wait
		job.Client, job.Store, job.StoreEnv = c, choice.Public(), choice.Env
		job.Outer = held.Parse(a.asked.Getenv(held.Variable))
		return do()
	})
	if e := (*exit.Error)(nil); f.quiet && errors.As(err, &e) && e.Status == busy {
		return &exit.Error{Status: e.Status}
	}
	return err
}

// observer reports to --status-fd that we wait. It tells the user of an outage
// and, if verbose, everything that happens to the lock.
func (a *app) observer(verbose bool, status *runner.Status) holdfast.Observer {
	return func(e holdfast.Event) {
		switch e.Kind {
		case holdfast.OutageBegan:
			a.storeIsAway(e.Err)
			return
		case holdfast.OutageEnded:
			a.storeIsBack(e.Took)
			return
		case holdfast.Waiting:
			status.Waiting(e.Name, e.Err.Error())
		}
		switch {
		case !verbose, e.Kind == holdfast.Renewed, e.Kind == holdfast.Refused: // too many, and told by the error
		case e.Kind == holdfast.Acquired:
			a.say("acquired %q with fencing token %d after %s", e.Name, e.Token, e.Took.Round(time.Millisecond))
		case e.Kind == holdfast.Released:
			a.say("released %q after %s", e.Name, e.Took.Round(time.Millisecond))
		default:
			a.say("%s %q: %v", e.Kind, e.Name, e.Err)
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
