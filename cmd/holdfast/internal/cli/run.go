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
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
	"github.com/holdfast-locks/holdfast/driver"
)

// runFlags are the flags of run as they were given.
type runFlags struct {
	jobFlags
	flockFlags
	names     []string
	shared    bool
	exclusive bool
	slots     int
	permits   int
	minHold   time.Duration
	noRenewal bool
	progress  time.Duration
}

// defineTaking defines how run and acquire take a lock.
func (f *runFlags) defineTaking(flags *pflag.FlagSet) {
	f.defineWait(flags)
	flags.IntVarP(&f.busy, "busy-status", "E", exit.Busy, "exit `STATUS` if somebody else has the lock")
	f.defineMode(flags)
	flags.IntVar(&f.slots, "slots", 0, "at most `N` at a time; all who use NAME must say the same")
	flags.IntVar(&f.permits, "permits", 1, "take `K` of the slots at once; only with --slots")
}

// defineWait defines how long the lock is waited for.
func (f *runFlags) defineWait(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.noWait, "no-wait", "n", false, "do not wait for the lock")
	durationVarP(flags, &f.wait, "wait", "w", 0, "wait at most `SECONDS` or a duration such as 1m30s; 0 is -n")
}

// defineMode defines whether others may share the lock.
func (f *runFlags) defineMode(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.exclusive, "exclusive", "x", false, "hold the lock exclusively (default)")
	flags.BoolVarP(&f.shared, "shared", "s", false, "others may share the lock; nobody has it exclusively")
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] NAME [--] COMMAND [ARGUMENT...]",
		Short: "Run a command under a lock",
		Long: `Run takes the lock NAME, runs COMMAND, and gives the lock back. If the store
cannot be reached any more, the command and all that descends from it are
stopped before the lock can be anybody else's; if somebody breaks the lock, or
deletes it in the store, within 5 s, or a third of the TTL if that is sooner.

Flags may follow NAME if a -- stands behind them: run NAME -w 3 -- COMMAND. With -N
the names are flags: run -N A -N B -- COMMAND takes both locks, or none, and the loss
of one stops the command. What scripts give to flock(1) does the same here, except
that -F, -u and descriptors are refused with what to use in their place.

The exit status is the command's own, or 128 + n if signal n ended it, or
  64  wrong arguments                  79   the lock was lost; the command was stopped
  69  the store cannot be reached      124  --max-hold was over; the command was stopped
  75  somebody else has the lock       126  the command cannot be executed
  77  the store refuses our rights     127  the command does not exist
  78  the store cannot do this, or NAME is a lock of another kind`,
		Example: `  holdfast run nightly -- ./report.sh
  holdfast run -n backup -c 'pg_dump app | gzip > app.sql.gz'
  holdfast run -w 30s --store redis://redis.internal:6379 invoices -- ./invoice
  holdfast run -s catalogue -- ./export.sh
  holdfast run -N orders -N stock -w 1m -- ./move.sh
  holdfast run --slots 3 encoders -- ./encode.sh`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(cmd, &f, args)
		},
	}
	flags := cmd.Flags()
	flags.SetNormalizeFunc(ofFlock)
	flags.SetInterspersed(false) // what follows NAME is the command's, unless a -- says otherwise
	flags.SortFlags = false
	flags.StringArrayVarP(&f.names, "name", "N", nil, "take the lock `NAME`; with several -N all of them, or none")
	f.defineTaking(flags)
	flags.StringArrayVarP(&f.shell, "command", "c", nil, "run `STRING` with sh -c")
	durationVar(flags, &f.ttl, "ttl", 30*time.Second, "lease TTL: after this host dies, others wait this long")
	durationVar(flags, &f.minHold, "min-hold", 0, "keep the lock closed for at least this long, even if the command ends earlier")
	durationVar(flags, &f.maxHold, "max-hold", 0, "stop the command so that the lock is released within this time")
	flags.BoolVar(&f.noRenewal, "no-keep-alive", false, "renew nothing in the background: the command calls holdfast extend")
	durationVar(flags, &f.progress, "progress", 0, "stop the command if it has not called holdfast progress for this long")
	flags.StringVar(&f.onLost, "on-lost", "term", "what happens to the command if the lock is lost: `term|kill|ignore`")
	durationVar(flags, &f.killAfter, "kill-after", 0, "time between TERM and KILL (default: a quarter of the TTL, 5s at most)")
	flags.BoolVar(&f.children, "wait-children", false, "keep the lock until what the command leaves behind has ended, too")
	flags.StringVar(&f.reason, "reason", "", "`TEXT` shown to others while the lock is held")
	flags.StringArrayVar(&f.labels, "label", nil, "`KEY=VALUE` shown to others; may be repeated")
	flags.IntVar(&f.statusFD, "status-fd", 0, "report events as JSON lines to file descriptor `N`")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no messages about the lock")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "tell what happens to the lock")
	f.defineFlock(flags, &f.exclusive)
	f.reportFlagErrors(cmd)
	return cmd
}

func (a *app) run(cmd *cobra.Command, f *runFlags, args []string) error {
	words, err := splitRun(cmd, len(f.names) > 0, args)
	if f.version { // even if nothing else was said
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

// runJob runs a job whose arguments are right.
func (a *app) runJob(ctx context.Context, f *runFlags, job *runner.Job) (err error) {
	if job.Path, err = runner.LookPath("run", job.Args[0]); err != nil {
		return err
	}
	job.Start = supervise.Prepare(nil) // it starts while the store is opened and the lock acquired
	defer job.Start.Close()
	return a.work(ctx, &f.jobFlags, job, func() error { return runner.Run(ctx, *job) })
}

// job checks the arguments of run. A wrong one is a usage error, and nothing
// has happened yet.
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

// checkNames checks the names of a job.
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
	j.Opts = holdfast.AcquireOptions{MinHold: f.minHold, MaxHold: f.maxHold, Progress: f.progress}
	if f.noRenewal {
		j.Opts.KeepAlive = holdfast.KeepAliveOff
	}
	if err := f.mode(cmd, &j.Opts); err != nil {
		return err
	}
	if err := positive(cmd, map[string]time.Duration{"min-hold": f.minHold, "max-hold": f.maxHold, "ttl": f.ttl, "progress": f.progress}); err != nil {
		return err
	}
	if f.noRenewal && cmd.Flags().Changed("progress") {
		return usage("%s: --no-keep-alive and --progress exclude one another: without renewals the lease ends by itself", cmd.Name())
	}
	return f.waiting(cmd, j)
}

// mode translates the flags about who else may have the lock.
func (f *runFlags) mode(cmd *cobra.Command, o *holdfast.AcquireOptions) error {
	slots, permits := cmd.Flags().Changed("slots"), cmd.Flags().Changed("permits")
	switch {
	case f.shared && f.exclusive, (f.shared || f.exclusive) && slots:
		return usage("%s: -s, -x and --slots exclude one another", cmd.Name())
	case permits && !slots:
		return usage("%s: --permits %d: want --slots with it", cmd.Name(), f.permits)
	case slots && (f.slots < 1 || f.slots > driver.MaxLimit):
		return usage("%s: --slots %d: want 1 to %d", cmd.Name(), f.slots, driver.MaxLimit)
	case permits && (f.permits < 1 || f.permits > f.slots):
		return usage("%s: --permits %d: want 1 to the %d of --slots", cmd.Name(), f.permits, f.slots)
	case f.shared:
		o.Mode = holdfast.Shared
	case slots:
		o.Mode, o.Limit, o.Permits = holdfast.Semaphore, f.slots, f.permits
	}
	return nil
}
