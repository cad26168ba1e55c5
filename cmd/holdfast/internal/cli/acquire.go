//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
	"github.com/holdfast-locks/holdfast/wire"
)

func (a *app) acquireCommand() *cobra.Command {
	var f jobFlags
	cmd := &cobra.Command{
		Use:   "acquire NAME --pid PID",
		Short: "Take a lock for the rest of a script",
		Long: `Acquire takes the lock NAME for a script, in this form only:

  eval "$(holdfast acquire NAME --pid $$ || echo exit $?)"

A keeper, a background process, renews the lease and releases it when the process PID ends. If
the lease cannot be renewed, or is lost, it sends TERM to PID before the lease ends. Only
holdfast run also stops all descendants.

If the lock is not acquired it prints "exit STATUS". Without the "|| echo exit $?" the script
would work unlocked if holdfast acquire were killed.

In the script, use holdfast check, extend, heartbeat and release. Without --pid there is no
keeper: the lease ends with its --ttl unless extend renews it.

The exit status is 0, 75 if another client has the lock. Others: holdfast --help.`,
		Example: `  eval "$(holdfast acquire deploy --pid $$ || echo exit $?)"
  eval "$(holdfast acquire -n --reason 'release 1.4' deploy --pid $$ || echo exit $?)"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.orExit(a.acquire(&f, args)) },
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return a.orExit(exit.With(exit.Usage, flagError(c, err))) })
	cmd.Flags().SetNormalizeFunc(ofFlock)
	f.define(cmd, "pid no-wait wait exclusive shared slots permits ttl reason quiet verbose | busy-status min-hold max-hold stall-after label")
	return a.withJSON(cmd)
}

// orExit prints a command that ends the calling shell if there is no lock. The shell evaluates
// the output.
func (a *app) orExit(err error) error {
	if e, ok := errors.AsType[*exit.Error](err); ok && !a.asksForJSON() {
		// A shell that does not read it has closed the pipe, or gets it from "|| echo".
		_, _ = fmt.Fprintf(a.stdout, "exit %d\n", e.Status)
	}
	return err
}

func (a *app) acquire(f *jobFlags, args []string) error {
	if len(args) != 1 {
		return usage("acquire: want one NAME, and flags: holdfast run runs a command under a lock")
	}
	for _, name := range []string{"min-hold", "max-hold", "stall-after"} {
		if given := f.cmd.Flags().Changed; given(name) && !given("pid") {
			return usage("acquire: --%s needs a keeper: give --pid $$ with it", name)
		}
	}
	return a.takeForScript(f, args[0], func(ctx context.Context, job *runner.Job, script *keeper.Script) error {
		if script == nil {
			job.Opts.KeepAlive = holdfast.KeepAliveOff
		}
		began := time.Now()
		lease, err := job.Acquire(ctx, "acquire")
		job.Line.End()
		if err == nil {
			if script == nil && !a.json {
				job.Warn("acquire %q: without --pid $$ nothing renews the lease: it ends in %s unless holdfast extend makes it longer", args[0], short(runner.TTL(job.Opts)))
			}
			err = a.handOver(ctx, handOver{began, job, lease, script, nil}, func(socket string) error { return a.printLease(job, lease, socket) })
			if err != nil {
				_ = lease.Release(ctx) // the client keeps trying; a lease that was left stays
			}
		}
		return err
	})
}

// takeForScript opens the store for a command that takes a lock for a script. script is the
// process of --pid; without --pid it is nil, and the lease is left to the caller. A wait ends
// with the script.
func (a *app) takeForScript(f *jobFlags, name string, do func(context.Context, *runner.Job, *keeper.Script) error) error {
	verb := verbOf(f.cmd)
	job, err := a.jobOf(f, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(f.cmd.Context())
	defer cancel()
	var script *keeper.Script
	s := a.session()
	s.holder.User, s.holder.Host = userAndHost()
	if f.cmd.Flags().Changed("pid") {
		if script, err = keeper.Watch(f.pid); err != nil {
			return usage("%s: --pid %w", verb, err)
		}
		s.holder.PID, s.holder.Program = script.PID, supervise.ProgramOf(script.PID)
		go func() { // ends with the script, or with ctx
			select {
			case <-script.Gone():
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	if err := a.outlives(verb); err != nil {
		return err
	}
	return f.hushed(s.take(ctx, f, &job, func() error {
		err := do(ctx, &job, script)
		if err != nil && script != nil && script.HasEnded() {
			return exit.Errorf(exit.Usage, "%s %q: process %d has ended", verb, name, script.PID)
		}
		return err
	}))
}

// outlives refuses a store that would end with this process, and with it the lease.
func (a *app) outlives(verb string) error {
	choice, err := a.choose()
	if err == nil && endsWithUs(choice) {
		err = exit.Errorf(exit.Config, "%s: the store memory: ends with this command: name one that lasts with --store", verb)
	}
	return err
}

// A handOver is a lease that this process has, and the script that gets it.
type handOver struct {
	began  time.Time // when this process began to acquire it
	job    *runner.Job
	lease  *holdfast.Lease
	script *keeper.Script // nil: nothing renews the lease
	once   *keeper.Once   // of do-once work; nil for a lock
}

// handOver leaves a lease to a keeper or, without a script, in the store. Until then this process
// renews it. tell reports the lease to the script; socket is the keeper's. The keeper releases
// the lease unless Commit, called after everything that can fail, confirms that the script has
// it. After an error the caller must end the lease.
func (a *app) handOver(ctx context.Context, h handOver, tell func(socket string) error) error {
	leave := func(socket string) error {
		if err := tell(socket); err != nil {
			return err
		}
		_, err := h.lease.Leave()
		return exit.With(exit.Lost, err)
	}
	if h.script == nil {
		return leave("")
	}
	kept, err := a.startKeeper(ctx, h)
	if err != nil {
		return err
	}
	if err := leave(kept.Socket); err != nil {
		kept.Cancel()
		return err
	}
	if err := kept.Commit(); err != nil {
		return exit.Errorf(exit.Unavailable, "%s %q: the keeper has ended: %w", a.verb, h.lease.Name(), err)
	}
	return nil
}

// startKeeper returns a keeper that has the lease. A signal such as TERM ends the wait.
func (a *app) startKeeper(ctx context.Context, h handOver) (*keeper.Keeper, error) {
	choice, err := a.choose()
	if err != nil {
		return nil, err
	}
	// This process renews the lease until the keeper has adopted it.
	handle := holdfast.NewHandle(h.lease.Name(), h.lease.ID(), h.lease.Token(), h.lease.Mode())
	order := keeper.Order{Store: choice, Handle: handle, Name: h.lease.Name(), PID: h.script.PID, Adopt: adoption(h.began, h.job.Opts), Once: h.once}
	message := fmt.Sprintf("%s %q: ended by a signal", a.verb, h.lease.Name())
	kept, ended, err := runner.UnlessEnded(ctx, h.job.Signals, message, func(context.Context) (*keeper.Keeper, error) { return keeper.Start(order) })
	switch {
	case ended != nil: // the keeper ends with this process, and releases the lease
		return nil, ended
	case err == nil && h.script.HasEnded(): // maybe before the keeper could watch it
		kept.Cancel()
		return nil, context.Canceled
	}
	return kept, err
}

// adoption returns how a keeper continues the lease. MaxHold, which counts from the
// acquisition, is shortened to count from the adoption.
func adoption(began time.Time, o holdfast.AcquireOptions) holdfast.AdoptOptions {
	if o.MaxHold > 0 {
		o.MaxHold = max(o.MaxHold-time.Since(began), holdfast.MinTTL)
	}
	return holdfast.AdoptOptions{TTL: o.TTL, StallAfter: o.StallAfter, MinHold: o.MinHold, MaxHold: o.MaxHold}
}

// printLease prints the variables of the script, in one write.
func (a *app) printLease(job *runner.Job, lease *holdfast.Lease, socket string) error {
	job.Socket = socket
	if a.json {
		return a.answer(struct {
			Name    string `json:"name"`
			Mode    string `json:"mode"`
			LeaseID string `json:"lease_id"`
			wire.Token
			TTLMS  int64  `json:"ttl_ms"`
			Socket string `json:"socket,omitempty"`
		}{lease.Name(), lease.Mode().Kind(), string(lease.ID()), wire.TokenOf(lease.Token()), job.Opts.TTL.Milliseconds(), socket}, "")
	}
	var b strings.Builder
	for _, entry := range job.Variables(lease) {
		key, value, _ := strings.Cut(entry, "=")
		if key == keeper.SocketVariable && socket == "" {
			fmt.Fprintf(&b, "unset %s\n", key) // of a run around this script
			continue
		}
		fmt.Fprintf(&b, "export %s=%s\n", key, quote(value))
	}
	return a.answer(nil, b.String())
}

// quote quotes a text for sh.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
