//go:build unix

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
	"github.com/holdfast-locks/holdfast/driver"
)

// runFlags are the flags of run as they were given. acquire and hold have some of them.
type runFlags struct {
	jobFlags
	flockFlags
	names      []string
	shared     bool
	exclusive  bool
	slots      int
	permits    int
	minHold    time.Duration
	noRenewal  bool
	stallAfter time.Duration
}

func (f *runFlags) defineMode(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.exclusive, "exclusive", "x", false, "hold the lock exclusively (default)")
	flags.BoolVarP(&f.shared, "shared", "s", false, "hold the lock together with other shared holders")
	flags.IntVar(&f.slots, "slots", 0, "allow at most `N` holders; all users of NAME must give the same N")
	flags.IntVar(&f.permits, "permits", 1, "take `K` of the slots; only with --slots")
}

// defineLimits defines the times that bound a hold.
func (f *runFlags) defineLimits(flags *pflag.FlagSet) {
	durationVar(flags, &f.minHold, "min-hold", 0, "keep the lock closed for at least this long")
	durationVar(flags, &f.maxHold, "max-hold", 0, "stop the command or script, and release the lock, after this long")
	durationVar(flags, &f.stallAfter, "stall-after", 0, "stop it if it has not called holdfast heartbeat for this long")
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] NAME [--] COMMAND [ARGUMENT...]",
		Short: "Run a command under a lock",
		Long: `Run waits for the lock NAME, runs COMMAND, and releases the lock. If the lease cannot be
renewed, COMMAND and all its descendants are stopped before another client can get the
lock. If someone breaks the lock or deletes it in the store, they are stopped within 5 s,
or within a third of the TTL if that is shorter.

Flags may follow NAME if a -- ends them: run NAME -w 3 -- COMMAND. With -N, names are flags:
run -N A -N B -- COMMAND takes both locks or none, and stops COMMAND if it loses one.
The flags of flock(1) work as they do there. -F, -u and file descriptors are refused, with
a message that names the replacement.

The exit status is COMMAND's own, 128 + n if signal n ended it, or
   75  another client has the lock      126  COMMAND cannot be executed
   79  the lock was lost                127  COMMAND does not exist
  124  --max-hold passed
or one of those in holdfast --help. After 79 and 124, COMMAND has been stopped.`,
		Example: `  holdfast run nightly -- ./report.sh
  holdfast run -n backup -c 'pg_dump app | gzip > app.sql.gz'
  holdfast run -w 30s --store redis://redis.internal:6379 invoices -- ./invoice
  holdfast run -N orders -N stock -w 1m -- ./move.sh
  holdfast run --slots 3 encoders -- ./encode.sh`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, &f, args) },
	}
	flags := cmd.Flags()
	flags.SetNormalizeFunc(ofFlock)
	flags.SetInterspersed(false) // arguments after NAME belong to the command, unless a -- follows
	flags.SortFlags = false
	flags.StringArrayVarP(&f.names, "name", "N", nil, "take the lock `NAME`; with several -N, all of them or none")
	f.defineWait(flags)
	f.defineBusy(flags)
	f.defineMode(flags)
	f.defineCommand(flags)
	f.defineTTL(flags)
	f.defineLimits(flags)
	flags.BoolVar(&f.noRenewal, "no-keep-alive", false, "do not renew the lease: the command calls holdfast extend")
	f.defineStopping(flags)
	f.defineTexts(flags)
	f.defineFlock(flags, &f.exclusive)
	f.reportFlagErrors(cmd)
	return cmd
}

func (a *app) run(cmd *cobra.Command, f *runFlags, args []string) error {
	words, err := splitRun(cmd, len(f.names) > 0, args)
	if f.version { // even if other arguments are missing
		return a.printVersion()
	}
	var job runner.Job
	return f.hushed(f.reportTo(cmd, &job, func(status *runner.Status) error {
		if err = cmp.Or(f.refused(f.children), err); err != nil {
			return err
		}
		a.defaultTTL(cmd, &f.ttl)
		if job, err = f.job(cmd, words); err != nil {
			return err
		}
		job.Status = status
		return a.runJob(cmd.Context(), f, &job)
	}))
}

// runJob runs a job whose arguments are valid.
func (a *app) runJob(ctx context.Context, f *runFlags, job *runner.Job) (err error) {
	if job.Path, err = runner.LookPath("run", job.Args[0]); err != nil {
		return err
	}
	job.Start = supervise.Prepare(nil) // it starts while the store is opened and the lock acquired
	defer job.Start.Close()
	return a.session().work(ctx, &f.jobFlags, job, func() error { return runner.Run(ctx, *job) })
}

// job checks the arguments of run, before anything happens.
func (f *runFlags) job(cmd *cobra.Command, words runWords) (j runner.Job, err error) {
	j = runner.Job{Names: append(f.names, words.names...)}
	if j.Args, err = f.command(cmd, words); err != nil {
		return j, err
	}
	if err := checkNames(j.Names); err != nil {
		return j, usage("run: %w", err)
	}
	if err := f.acquisition(cmd, &j); err != nil {
		return j, err
	}
	return j, f.stopping(cmd, &j)
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

// command returns the command to run.
func (f *runFlags) command(cmd *cobra.Command, w runWords) ([]string, error) {
	if len(f.shell)+len(w.command) == 0 && len(w.names) == 1 && isNumber(w.names[0]) {
		return nil, usage("run: no command given; holdfast takes no file descriptors: %s", inScripts)
	}
	return f.jobFlags.command(cmd, w.command)
}

// acquisition translates the flags about the lock.
func (f *runFlags) acquisition(cmd *cobra.Command, j *runner.Job) error {
	j.Opts = holdfast.AcquireOptions{MinHold: f.minHold, MaxHold: f.maxHold, StallAfter: f.stallAfter}
	if f.noRenewal {
		j.Opts.KeepAlive = holdfast.KeepAliveOff
	}
	if err := f.mode(cmd, &j.Opts); err != nil {
		return err
	}
	if err := positive(cmd, map[string]time.Duration{"min-hold": f.minHold, "max-hold": f.maxHold, "ttl": f.ttl, "stall-after": f.stallAfter}); err != nil {
		return err
	}
	if f.noRenewal && cmd.Flags().Changed("stall-after") {
		return usage("%s: --no-keep-alive and --stall-after exclude one another: without renewals the lease ends by itself", cmd.Name())
	}
	return f.waiting(cmd, j)
}

// mode translates the flags about sharing the lock.
func (f *runFlags) mode(cmd *cobra.Command, o *holdfast.AcquireOptions) error {
	slots, permits := cmd.Flags().Changed("slots"), cmd.Flags().Changed("permits")
	switch {
	case f.shared && f.exclusive, (f.shared || f.exclusive) && slots:
		return usage("%s: -s, -x and --slots exclude one another", cmd.Name())
	case permits && !slots:
		return usage("%s: --permits %d: want --slots with it", cmd.Name(), f.permits)
	case slots && (f.slots < 1 || f.slots > holdfast.MaxLimit):
		return usage("%s: --slots %d: want 1 to %d", cmd.Name(), f.slots, holdfast.MaxLimit)
	case permits && (f.permits < 1 || f.permits > f.slots):
		return usage("%s: --permits %d: want 1 to the %d of --slots", cmd.Name(), f.permits, f.slots)
	case f.shared:
		o.Mode = holdfast.Shared
	case slots:
		o.Mode = holdfast.Permits(f.permits, f.slots)
	}
	return nil
}
