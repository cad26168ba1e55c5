//go:build unix

package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/driver"
)

// jobOf returns the job that the flags describe. It checks all flags before anything happens.
func (a *app) jobOf(f *jobFlags, names ...string) (j runner.Job, err error) {
	a.defaultTTL(f.cmd, &f.opts.TTL)
	verb, given := verbOf(f.cmd), f.cmd.Flags().Changed
	if err := checkNames(names); err != nil {
		return j, usage("%s: %w", verb, err)
	}
	if err := f.check(); err != nil {
		return j, err
	}
	kinds := map[string]runner.OnLost{"term": runner.Term, "kill": runner.Kill, "ignore": runner.Ignore}
	kind, ok := kinds[f.onLost]
	if !ok {
		return j, usage("%s: --on-lost %q: want term, kill or ignore", verb, f.onLost)
	}
	j = runner.Job{
		Names: names, Try: f.noWait || given("wait") && f.opts.MaxWait == 0, Opts: f.opts,
		Busy: f.busy, OnLost: kind, WaitChildren: f.children,
	}
	switch {
	case f.shared:
		j.Opts.Mode = holdfast.Shared
	case given("slots"):
		j.Opts.Mode = holdfast.Permits(f.permits, f.slots)
	}
	if f.noRenewal {
		j.Opts.KeepAlive = holdfast.KeepAliveOff
	}
	if j.Opts.Labels, err = parseLabels(f.labels); err == nil {
		err = j.Opts.Check()
	}
	if err != nil {
		return j, usage("%s: %w", verb, err)
	}
	ttl, flag := runner.TTL(j.Opts), "ttl"
	if ttl < j.Opts.TTL {
		flag = "max-hold"
	}
	if ttl < runner.MinTTL {
		return j, usage("%s: --%s %s: want at least %s, or there is no time to stop the work when the lock is lost", verb, flag, ttl, runner.MinTTL)
	}
	j.KillAfter = f.killAfter
	switch {
	case !given("kill-after"):
		j.KillAfter = keeper.Grace(ttl)
	case f.killAfter > ttl/2:
		return j, usage("%s: --kill-after %s: want 0 to half of the TTL, %s", verb, f.killAfter, ttl/2)
	}
	return j, nil
}

// check refuses values of flags that are invalid in every store.
func (f *jobFlags) check() error {
	verb, given := verbOf(f.cmd), f.cmd.Flags().Changed
	slots, permits := given("slots"), given("permits")
	switch {
	case f.shared && f.exclusive, (f.shared || f.exclusive) && slots:
		return usage("%s: -s, -x and --slots exclude one another", verb)
	case permits && !slots:
		return usage("%s: --permits %d: want --slots with it", verb, f.permits)
	case slots && (f.slots < 1 || f.slots > holdfast.MaxLimit):
		return usage("%s: --slots %d: want 1 to %d", verb, f.slots, holdfast.MaxLimit)
	case permits && (f.permits < 1 || f.permits > f.slots):
		return usage("%s: --permits %d: want 1 to the %d of --slots", verb, f.permits, f.slots)
	case f.noRenewal && given("stall-after"):
		return usage("%s: --no-keep-alive and --stall-after exclude one another: without renewals the lease ends by itself", verb)
	case f.busy < 0 || f.busy > 255:
		return usage("%s: -E %d: want a status from 0 to 255", verb, f.busy)
	case given("wait") && f.noWait:
		return usage("%s: -n and -w exclude one another", verb)
	case f.maxOutput < 1 || f.maxOutput > holdfast.MaxOnceResult:
		return usage("%s: --max-output %d: want 1 to %d", verb, f.maxOutput, holdfast.MaxOnceResult)
	}
	if err := (&holdfast.OnceOptions{Fingerprint: f.fingerprint}).Check(); err != nil {
		return usage("%s: %w", verb, err)
	}
	return nil
}

func checkNames(names []string) error {
	if len(names) > driver.MaxBatch {
		return fmt.Errorf("%d names: want %d at most", len(names), driver.MaxBatch)
	}
	for i, name := range names {
		if err := driver.CheckName(name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("-N %q is given twice", name)
		}
	}
	return nil
}

func parseLabels(given []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, s := range given {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--label %q: want KEY=VALUE", s)
		}
		labels[key] = value
	}
	return labels, nil
}

// commandJob is jobOf for a command to run, which is words or the string of -c. It finds the
// command's file.
func (a *app) commandJob(f *jobFlags, words []string) (j runner.Job, err error) {
	verb := verbOf(f.cmd)
	switch {
	case len(f.shell) > 1:
		return j, usage("%s: -c is given twice", verb)
	case len(f.shell) == 1 && len(words) > 0:
		return j, usage("%s: -c and a command are both given", verb)
	case len(f.shell) == 1:
		words = []string{"/bin/sh", "-c", f.shell[0]}
	case len(words) == 0 || words[0] == "":
		return j, usage("%s: no command given: want holdfast %s NAME -- COMMAND", verb, verb)
	}
	if j, err = a.jobOf(f, f.names...); err != nil {
		return j, err
	}
	j.Args = words
	j.Path, err = runner.LookPath(verb, words[0])
	return j, err
}

// work opens the store for the job and calls do.
func (s *session) work(ctx context.Context, f *jobFlags, job *runner.Job, do func() error) error {
	job.Signals = runner.Catch() // before there is a socket that a signal could leave behind
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
	engine, ended, err := runner.UnlessEnded(ctx, job.Signals, "ended by a signal while opening the store", s.open)
	switch {
	case ended != nil:
		return ended
	case err != nil:
		return err
	}
	return s.use(ctx, engine, func(_ context.Context, c *holdfast.Client) error {
		if f.verbose {
			s.sayStore()
		}
		job.Opts.MaxWait = s.wait
		job.Client, job.Store, job.StoreEnv = c, s.choice.Public(), s.choice.Env
		job.Outer = runner.ParseHeld(s.getenv(runner.HeldVariable))
		return do()
	})
}

// hushed removes the message of err if another client has the lock and --quiet is given.
func (f *jobFlags) hushed(err error) error {
	if f.quiet && exit.Is(err, f.busy) {
		return &exit.Error{Status: f.busy}
	}
	return err
}

// reported opens the descriptor of --status-fd, if given, calls do, and reports the result of do.
func (f *jobFlags) reported(do func(*runner.Status) error) error {
	var status *runner.Status
	if f.cmd.Flags().Changed("status-fd") {
		var err error
		if status, err = runner.OpenStatus(f.statusFD); err != nil {
			return usage("%s: --status-fd: %w", f.cmd.Name(), err)
		}
	}
	err := do(status)
	status.End(f.names, err)
	return f.hushed(err)
}

// reportFlagErrors reports wrong flags to --status-fd as well.
func (f *jobFlags) reportFlagErrors() {
	f.cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return f.reported(func(*runner.Status) error { return flagError(cmd, err) })
	})
}

// observer reports outages to the user and, if verbose, events of the lock. It leaves out events
// that the waiting line or the command's error reports.
func (s *session) observer(verbose bool) holdfast.Observer {
	return func(e holdfast.Event) {
		switch e.Kind {
		case holdfast.OutageBegan:
			s.storeIsAway(e.Err)
		case holdfast.OutageEnded:
			if e.Err == nil { // otherwise the wait has ended
				s.storeIsBack(e.Took)
			}
		case holdfast.Acquired, holdfast.Released, holdfast.RenewFailed, holdfast.Lost, holdfast.CleanupFailed, holdfast.LeaseLeft:
			if verbose && (e.Kind != holdfast.Released || e.Err == nil) {
				s.sayEvent(e)
			}
		}
	}
}

// control returns the control socket of a job. A missing socket is an error only for jobs that
// depend on it.
func (s *session) control(f *jobFlags, job *runner.Job) (*keeper.Server, error) {
	server, err := keeper.Listen(s.getenv)
	switch {
	case err == nil:
	case job.Opts.KeepAlive == holdfast.KeepAliveOff, job.Opts.StallAfter > 0:
		return nil, exit.Errorf(exit.Config, "run: %w", err)
	case f.verbose:
		s.say("%v: holdfast extend and heartbeat do not work in this job", err)
	}
	return server, nil
}

// sayEvent reports an event of a lock.
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
