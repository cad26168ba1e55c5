//go:build unix

package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/driver"
)

func (a *app) once(cmd *cobra.Command, f *onceFlags, words, command []string) error {
	var job runner.OnceJob
	return f.hushed(f.reportTo(cmd, &job.Job, func(status *runner.Status) (err error) {
		a.defaultTTL(cmd, &f.ttl)
		if job, err = f.job(cmd, words, command); err != nil {
			return err
		}
		if job.Path, err = runner.LookPath("once", job.Args[0]); err != nil {
			return err
		}
		job.Status = status
		return a.session().work(cmd.Context(), &f.jobFlags, &job.Job, func() error { return a.runOnce(cmd.Context(), f, job) })
	}))
}

// runOnce runs the job, or prints its recorded output.
func (a *app) runOnce(ctx context.Context, f *onceFlags, job runner.OnceJob) error {
	result, err := runner.Once(ctx, job)
	if err != nil || !result.Replayed {
		return err
	}
	if f.verbose {
		a.say("once %q: it was done already, under fencing token %d", job.Names[0], result.Token)
	}
	if !f.replay {
		return nil
	}
	_, err = a.stdout.Write(result.Value)
	return exit.With(exit.Output, err)
}

// job checks the arguments of once, before anything happens.
func (f *onceFlags) job(cmd *cobra.Command, words, command []string) (j runner.OnceJob, err error) {
	switch {
	case len(words) == 0:
		return j, usage("once: no key given")
	case len(words) > 1:
		return j, usage("once: %q: want one KEY before the --", words[1])
	case f.retention < holdfast.MinTTL || f.retention > holdfast.MaxRetention:
		return j, usage("once: --retention %s: want %s to %s", f.retention, holdfast.MinTTL, holdfast.MaxRetention)
	case f.maxOutput < 1 || f.maxOutput > holdfast.MaxOnceResult:
		return j, usage("once: --max-output %d: want 1 to %d", f.maxOutput, holdfast.MaxOnceResult)
	}
	if err := (&holdfast.OnceOptions{Fingerprint: f.fingerprint}).Check(); err != nil {
		return j, usage("once: %w", err)
	}
	j = runner.OnceJob{Retention: f.retention, Fingerprint: f.fingerprint, MaxOutput: f.maxOutput}
	j.Names, j.Opts.MaxHold = words, f.maxHold
	if j.Args, err = f.command(cmd, command); err != nil {
		return j, err
	}
	if err := driver.CheckName(words[0]); err != nil {
		return j, usage("once: %w", err)
	}
	if err := positive(cmd, map[string]time.Duration{"max-hold": f.maxHold, "ttl": f.ttl}); err != nil {
		return j, err
	}
	if err := f.waiting(cmd, &j.Job); err != nil {
		return j, err
	}
	return j, f.stopping(cmd, &j.Job)
}
