//go:build unix

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire"
)

// acquireFlags are the flags of acquire as they were given.
type acquireFlags struct {
	runFlags
	pid int
}

func (a *app) acquireCommand() *cobra.Command {
	var f acquireFlags
	cmd := &cobra.Command{
		Use:   "acquire NAME --pid PID",
		Short: "Take a lock for the rest of a script",
		Long: `Acquire takes the lock NAME for a script, in this form only:

  eval "$(holdfast acquire NAME --pid $$ || echo exit $?)"

It prints shell variables. A keeper, a background process, renews the lease and releases it
when the process PID ends. If the lease cannot be renewed, or is lost, the keeper sends TERM
to PID before the lease ends. It stops nothing else: holdfast run, which also stops all
descendants, is stronger.

If the lock is not acquired it prints "exit STATUS". Without the "|| echo exit $?" the script
would work unlocked if holdfast acquire were killed.

In the script, holdfast check tests the lease, extend lengthens it, heartbeat reports
progress, and release ends it early. Without --pid there is no keeper: the lease ends with
its --ttl unless extend renews it.

The exit status is 0, 75 if another client has the lock, or one of those in holdfast --help.`,
		Example: `  eval "$(holdfast acquire deploy --pid $$ || echo exit $?)"
  eval "$(holdfast acquire -n --reason 'release 1.4' deploy --pid $$ || echo exit $?)"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.orExit(f.hushed(a.acquire(cmd, &f, args))) },
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return a.orExit(exit.With(exit.Usage, flagError(c, err))) })
	flags := cmd.Flags()
	flags.SetNormalizeFunc(ofFlock)
	flags.SortFlags = false
	flags.IntVar(&f.pid, "pid", 0, "keep the lock until the process `PID` ends: $$ in a script")
	f.defineWait(flags)
	f.defineBusy(flags)
	f.defineMode(flags)
	f.defineTTL(flags)
	f.defineLimits(flags)
	f.defineTexts(flags)
	return a.withJSON(cmd)
}

// orExit prints a command that ends the shell which evaluates the output, if there is no
// lock.
func (a *app) orExit(err error) error {
	var e *exit.Error
	if errors.As(err, &e) && !a.asksForJSON() {
		// A shell that does not read it has closed the pipe, or gets it from "|| echo".
		_, _ = fmt.Fprintf(a.stdout, "exit %d\n", e.Status)
	}
	return err
}

func (a *app) acquire(cmd *cobra.Command, f *acquireFlags, args []string) error {
	a.defaultTTL(cmd, &f.ttl)
	job, err := f.job(cmd, args)
	if err != nil {
		return err
	}
	script, err := scriptOf(cmd, "acquire", f.pid)
	if err != nil {
		return err
	}
	if err := a.outlives("acquire"); err != nil {
		return err
	}
	s := a.session()
	s.holder = holderOf(script)
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if script != nil {
		go func() { // ends with the script, or with ctx
			select {
			case <-script.Gone():
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return s.take(ctx, &f.jobFlags, &job, func() error { return a.handOver(ctx, &job, script) })
}

// holderOf returns the script as others see it.
func holderOf(script *keeper.Script) (h holdfast.Holder) {
	h.User, h.Host = userAndHost()
	if script != nil {
		h.PID, h.Program = script.PID, supervise.ProgramOf(script.PID)
	}
	return h
}

// job checks the arguments of acquire, before anything happens.
func (f *acquireFlags) job(cmd *cobra.Command, args []string) (j runner.Job, err error) {
	if len(args) != 1 {
		return j, usage("acquire: want one NAME, and flags: holdfast run runs a command under a lock")
	}
	j.Names = args
	if err := driver.CheckName(args[0]); err != nil {
		return j, usage("acquire: %w", err)
	}
	if err := f.acquisition(cmd, &j); err != nil {
		return j, err
	}
	if ttl := runner.TTL(j.Opts); ttl < runner.MinTTL {
		return j, usage("acquire: --ttl %s: want at least %s, or there is no time to warn the script when the lock is lost", ttl, runner.MinTTL)
	}
	if !cmd.Flags().Changed("pid") {
		for _, name := range []string{"min-hold", "max-hold", "stall-after"} {
			if cmd.Flags().Changed(name) {
				return j, usage("acquire: --%s needs a keeper: give --pid $$ with it", name)
			}
		}
	}
	return j, nil
}

// scriptOf returns the process to keep the lock for; nil without --pid. A later process with
// the same number is not mistaken for it.
func scriptOf(cmd *cobra.Command, verb string, pid int) (*keeper.Script, error) {
	if !cmd.Flags().Changed("pid") {
		return nil, nil
	}
	script, err := keeper.Watch(pid)
	if err != nil {
		return nil, usage("%s: --pid %w", verb, err)
	}
	return script, nil
}

// outlives refuses a store that ends with this process, and the lease with it.
func (a *app) outlives(verb string) error {
	choice, err := a.choose()
	if err == nil && endsWithUs(choice) {
		err = exit.With(exit.Config, fmt.Errorf("%s: the store memory: ends with this command: name one that lasts with --store", verb))
	}
	return err
}

// handOver takes the lock, leaves it to a keeper, and prints the variables of the script.
// Until the keeper has the lease, this process renews it. The keeper releases the lease
// unless Commit tells it, after everything that can fail, that the variables were printed.
func (a *app) handOver(ctx context.Context, job *runner.Job, script *keeper.Script) error {
	if script == nil {
		job.Opts.KeepAlive = holdfast.KeepAliveOff
	}
	began := time.Now()
	lease, err := job.Acquire(ctx, "acquire")
	switch {
	case script != nil && script.HasEnded():
		if err == nil {
			_ = lease.Release(ctx) // the client goes on trying
		}
		return exit.With(exit.Usage, fmt.Errorf("acquire %q: process %d has ended", job.Names[0], script.PID))
	case err != nil:
		return err
	case script == nil:
		return a.leave(ctx, lease, func() error { return a.printLease(job, lease) })
	}
	kept, err := a.startKeeper(began, job, lease, script, nil)
	if err != nil {
		_ = lease.Release(ctx) // the client goes on trying
		return err
	}
	job.Socket = kept.Socket
	if err := a.leave(ctx, lease, func() error { return a.printLease(job, lease) }); err != nil {
		kept.Cancel()
		return err
	}
	if err := kept.Commit(); err != nil {
		return exit.With(exit.Unavailable, fmt.Errorf("acquire %q: the keeper has ended: %w", lease.Name(), err))
	}
	return nil
}

// leave leaves the lease in the store, for the script. If tell fails, the script does not
// know of the lease, and leave releases it.
func (a *app) leave(ctx context.Context, lease *holdfast.Lease, tell func() error) error {
	if err := tell(); err != nil {
		_ = lease.Release(ctx) // the client goes on trying
		return err
	}
	if _, err := lease.Leave(); err != nil {
		return exit.With(exit.Lost, err)
	}
	return nil
}

// startKeeper returns a keeper that has the lease. A signal such as TERM ends the wait.
func (a *app) startKeeper(began time.Time, job *runner.Job, lease *holdfast.Lease, script *keeper.Script, once *keeper.Once) (*keeper.Keeper, error) {
	choice, err := a.choose()
	if err != nil {
		return nil, err
	}
	// This process renews the lease until the keeper has adopted it.
	handle := holdfast.NewHandle(lease.Name(), lease.ID(), lease.Token(), lease.Mode())
	order := keeper.Order{Store: choice, Handle: handle, Name: lease.Name(), PID: script.PID, Adopt: adoption(began, job), Once: once}
	verb := cmp.Or(a.verb, "acquire")
	type started struct {
		*keeper.Keeper
		error
	}
	done := make(chan started, 1)
	go func() { // ends within the time that a keeper may take
		k, err := keeper.Start(order)
		done <- started{k, err}
	}()
	for {
		select {
		case s := <-done:
			if s.error == nil && script.HasEnded() { // before the keeper could watch it, or after
				s.Cancel()
				return nil, exit.With(exit.Usage, fmt.Errorf("%s %q: process %d has ended", verb, lease.Name(), script.PID))
			}
			return s.Keeper, s.error
		case s := <-job.Signals:
			if sig := s.(syscall.Signal); supervise.Ends(sig) {
				// The keeper ends with this process, and releases the lease.
				return nil, exit.With(exit.Signal(int(sig)), fmt.Errorf("%s %q: ended by a signal", verb, lease.Name()))
			}
		}
	}
}

// adoption returns how a keeper continues the lease. MaxHold, which counts from the
// acquisition, is shortened to count from the adoption.
func adoption(began time.Time, job *runner.Job) holdfast.AdoptOptions {
	o := job.Opts
	left := func(d time.Duration) time.Duration {
		if d == 0 {
			return 0
		}
		return max(d-time.Since(began), holdfast.MinTTL)
	}
	return holdfast.AdoptOptions{TTL: o.TTL, StallAfter: o.StallAfter, MinHold: o.MinHold, MaxHold: left(o.MaxHold)}
}

// printLease prints the variables of the script, in one write.
func (a *app) printLease(job *runner.Job, lease *holdfast.Lease) error {
	if a.json {
		return a.answer(struct {
			Name    string     `json:"name"`
			Mode    string     `json:"mode"`
			LeaseID string     `json:"lease_id"`
			Socket  string     `json:"socket,omitempty"`
			TTLMS   int64      `json:"ttl_ms"`
			Token   wire.Token `json:"token"`
		}{lease.Name(), lease.Mode().Kind(), string(lease.ID()), job.Socket, job.Opts.TTL.Milliseconds(), wire.TokenOf(lease.Token())}, "")
	}
	var b strings.Builder
	for _, entry := range job.Variables(lease) {
		key, value, _ := strings.Cut(entry, "=")
		if key == keeper.SocketVariable && job.Socket == "" {
			fmt.Fprintf(&b, "unset %s\n", key) // of a run around this script
			continue
		}
		fmt.Fprintf(&b, "export %s=%s\n", key, quote(value))
	}
	_, err := io.WriteString(a.stdout, b.String())
	return exit.With(exit.Output, err)
}

// quote quotes a text for sh.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
