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
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/control"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keep"
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

It prints variables for the shell to set. A keeper, a process in the background,
renews the lease, gives it back when the process PID ends, however that comes
about, and sends PID the signal TERM before the lease ends if it cannot be renewed,
or is lost. It stops nothing else: holdfast run, which stops all that a command has
started, is stronger.

If the lock is not to be had it prints "exit STATUS" for the shell. Without the
"|| echo exit $?" a script would work on unlocked if holdfast acquire were killed.

In the script, holdfast check tells whether the lease is still good, extend makes
it longer, progress tells that the work goes on, and release gives it back early.
Without --pid there is no keeper: the lease ends with its --ttl unless extend
renews it.

The exit status is 0, or
  64  wrong arguments, or no such process  75  somebody else has the lock
  69  the store cannot be reached          77  the store refuses our rights
  74  standard output cannot be written    78  the store cannot do this, or NAME is
                                               a lock of another kind`,
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
	f.defineTaking(flags)
	durationVar(flags, &f.ttl, "ttl", 30*time.Second, "lease TTL: after this host dies, others wait this long")
	durationVar(flags, &f.minHold, "min-hold", 0, "keep the lock closed for at least this long, even if the script ends earlier")
	durationVar(flags, &f.maxHold, "max-hold", 0, "end the lease, and the script, after this time")
	durationVar(flags, &f.progress, "progress", 0, "send TERM if the script has not called holdfast progress for this long")
	flags.StringVar(&f.reason, "reason", "", "`TEXT` shown to others while the lock is held")
	flags.StringArrayVar(&f.labels, "label", nil, "`KEY=VALUE` shown to others; may be repeated")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no messages about the lock")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "tell what happens to the lock")
	return a.withJSON(cmd)
}

// orExit prints what ends a shell that evaluates the output, if err says that there is
// no lock.
func (a *app) orExit(err error) error {
	var e *exit.Error
	if errors.As(err, &e) && !a.asksForJSON() {
		// A shell that reads nothing of it has closed the pipe, or has it from "|| echo".
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
	a.holder.User, a.holder.Host = userAndHost()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if script != nil {
		a.holder.PID, a.holder.Program = script.PID, supervise.ProgramOf(script.PID)
		go func() { // ends with the script, or with ctx
			select {
			case <-script.Gone():
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return a.take(ctx, &f.jobFlags, &job, func() error { return a.handOver(ctx, &job, script) })
}

// job checks the arguments of acquire. Nothing has happened yet.
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
		return j, usage("acquire: --ttl %s: want at least %s, or there is no time to tell the script when the lock is lost", ttl, runner.MinTTL)
	}
	if !cmd.Flags().Changed("pid") {
		for _, name := range []string{"min-hold", "max-hold", "progress"} {
			if cmd.Flags().Changed(name) {
				return j, usage("acquire: --%s needs a keeper: give --pid $$ with it", name)
			}
		}
	}
	return j, nil
}

// scriptOf returns the process to keep the lock for; nil without --pid. From now on
// another process with its number is not taken for it.
func scriptOf(cmd *cobra.Command, verb string, pid int) (*keep.Script, error) {
	if !cmd.Flags().Changed("pid") {
		return nil, nil
	}
	script, err := keep.Watch(pid)
	if err != nil {
		return nil, usage("%s: --pid %w", verb, err)
	}
	return script, nil
}

// outlives refuses a store that ends with this process: nobody could find the lease.
func (a *app) outlives(verb string) error {
	choice, err := a.choose()
	if err == nil && strings.HasPrefix(strings.ToLower(choice.URL), "memory:") {
		err = exit.With(exit.Config, fmt.Errorf("%s: the store memory: ends with this command: name one that lasts with --store", verb))
	}
	return err
}

// handOver takes the lock, leaves it to a keeper, and prints what the script has to
// know. Until the keeper has it this process renews it, and the keeper gives it back
// unless it hears, after all that can fail, that the script has been told.
func (a *app) handOver(ctx context.Context, job *runner.Job, script *keep.Script) error {
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
	keeper, err := a.startKeeper(began, job, lease, script, nil)
	if err != nil {
		_ = lease.Release(ctx) // the client goes on trying
		return err
	}
	job.Socket = keeper.Socket
	if err := a.leave(ctx, lease, func() error { return a.printLease(job, lease) }); err != nil {
		keeper.Cancel()
		return err
	}
	if err := keeper.Commit(); err != nil {
		return exit.With(exit.Unavailable, fmt.Errorf("acquire %q: the keeper has ended: %w", lease.Name(), err))
	}
	return nil
}

// leave leaves the lease in the store, for the script that is told of it. If that
// cannot be told, the lease is given back.
func (a *app) leave(ctx context.Context, lease *holdfast.Lease, tell func() error) error {
	if err := tell(); err != nil {
		_ = lease.Release(ctx) // the client goes on trying
		return err
	}
	if err := lease.Leave(); err != nil {
		return exit.With(exit.Lost, err)
	}
	return nil
}

// startKeeper returns a keeper that has the lease. A signal that asks to end ends the
// wait for it.
func (a *app) startKeeper(began time.Time, job *runner.Job, lease *holdfast.Lease, script *keep.Script, once *keep.Once) (*keep.Keeper, error) {
	choice, err := a.choose()
	if err != nil {
		return nil, err
	}
	order := keep.Order{Store: choice, Name: lease.Name(), LeaseID: lease.ID(), PID: script.PID, Adopt: adoption(began, job, lease), Once: once}
	verb := cmp.Or(a.verb, "acquire")
	type started struct {
		*keep.Keeper
		error
	}
	done := make(chan started, 1)
	go func() { // ends within the time that a keeper may take
		k, err := keep.Start(order)
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
				// The keeper ends with this process, and gives back what it has.
				return nil, exit.With(exit.Signal(int(sig)), fmt.Errorf("%s %q: ended by a signal", verb, lease.Name()))
			}
		}
	}
}

// adoption is how a keeper goes on with the lease. What counts from the acquisition
// has to count from when it adopts the lease: it lasts no longer for that.
func adoption(began time.Time, job *runner.Job, lease *holdfast.Lease) holdfast.AdoptOptions {
	o := job.Opts
	left := func(d time.Duration) time.Duration {
		if d == 0 {
			return 0
		}
		return max(d-time.Since(began), holdfast.MinTTL)
	}
	return holdfast.AdoptOptions{
		Token: lease.Token(), Mode: o.Mode, Limit: o.Limit, Permits: o.Permits, TTL: o.TTL, Progress: o.Progress,
		MinHold: o.MinHold, MaxHold: left(o.MaxHold),
	}
}

// printLease prints what the script has to know, in one piece.
func (a *app) printLease(job *runner.Job, lease *holdfast.Lease) error {
	if a.json {
		return a.answer(struct {
			Name    string     `json:"name"`
			Mode    string     `json:"mode"`
			LeaseID string     `json:"lease_id"`
			Socket  string     `json:"socket,omitempty"`
			TTLMS   int64      `json:"ttl_ms"`
			Token   wire.Token `json:"token"`
		}{lease.Name(), lease.Mode().String(), string(lease.ID()), job.Socket, job.Opts.TTL.Milliseconds(), wire.TokenOf(lease.Token())}, "")
	}
	var b strings.Builder
	for _, entry := range job.Variables(lease) {
		key, value, _ := strings.Cut(entry, "=")
		if key == control.Variable && job.Socket == "" {
			fmt.Fprintf(&b, "unset %s\n", key) // that of a run around this script
			continue
		}
		fmt.Fprintf(&b, "export %s=%s\n", key, quote(value))
	}
	_, err := io.WriteString(a.stdout, b.String())
	return exit.With(exit.Output, err)
}

// quote quotes a text for sh.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
