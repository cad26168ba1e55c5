//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

// A OnceJob is a command that runs unless it was done already. Its one name is the key; its mode
// is exclusive.
type OnceJob struct {
	Job
	Retention   time.Duration
	Fingerprint string
	MaxOutput   int // bytes
}

// A once is one run of a OnceJob. Its fields are set when the command has ended.
type once struct {
	OnceJob
	status int      // of the command
	output *capture // nil unless the command was started
}

// Once runs the job, or returns what the command wrote to standard output when it was done
// before: then the result is Replayed, and nothing has run. The output of the command is passed
// on while it runs.
//
// The error is an *exit.Error with the status to exit with. After an error nothing is recorded;
// only with exit.Unavailable may there be a record, if the command ran.
func Once(ctx context.Context, j OnceJob) (holdfast.OnceResult, error) {
	j.verb = "once"
	o := &once{OnceJob: j}
	run, err := j.Begin(ctx, "once: ended by a signal before the command was started")
	switch {
	case err != nil:
		return holdfast.OnceResult{}, o.verdict(err)
	case run.Replayed():
		return run.Result(), nil
	}
	return holdfast.OnceResult{}, o.finish(ctx, run)
}

// Begin begins the work, under a lease that has its whole TTL, or finds that it was done. A signal
// ends the wait, with message. It refuses to wait for a lock of a run around this one.
func (j OnceJob) Begin(ctx context.Context, message string) (*holdfast.OnceRun, error) {
	run, ended, err := UnlessEnded(ctx, j.Signals, message, j.begin)
	j.Line.End()
	if ended == nil || err == nil && run.Replayed() {
		return run, err
	}
	if err == nil {
		ctx, cancel := context.WithDeadline(ctx, ended.EndBy)
		defer cancel()
		_ = run.Fail(ctx)
	}
	return nil, ended
}

func (j OnceJob) begin(ctx context.Context) (run *holdfast.OnceRun, err error) {
	opts := holdfast.OnceOptions{
		TTL: j.Opts.TTL, Retention: j.Retention, Await: j.Await(), WholeTTL: true, Fingerprint: j.Fingerprint,
		MaxResult: j.MaxOutput, MaxHold: j.Opts.MaxHold, Reason: j.Opts.Reason, Labels: j.Opts.Labels, OnWait: j.Opts.OnWait,
	}
	err = j.unlessBlocked(ctx, &opts.OnWait, func(ctx context.Context) error {
		run, err = j.Client.OnceBegin(ctx, j.Names[0], &opts)
		return err
	})
	return run, err
}

// finish runs the command, and records its output or frees the key.
func (o *once) finish(ctx context.Context, run *holdfast.OnceRun) error {
	verdict, err := o.run(run.Lease())
	if verdict != nil {
		if verdict.KeepLock {
			return verdict
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, endBy(verdict))
		defer cancel()
	}
	var output []byte
	if err == nil {
		output, err = o.end(verdict)
	}
	if err == nil {
		err = run.Complete(ctx, output)
	} else {
		err = errors.Join(err, run.Fail(ctx))
	}
	if o.output != nil {
		if ended := o.flush(); ended != 0 && err == nil {
			return exit.Errorf(exit.Signal(ended), "once %s: it is done and recorded; ended by a signal while standard output did not take all of it", Quoted(o.Names))
		}
	}
	return o.verdict(err)
}

// end returns the output of the command, or an error that says why nothing is recorded.
func (o *once) end(verdict *exit.Error) ([]byte, error) {
	output, tooLong := o.output.end()
	switch {
	case verdict != nil:
		return nil, verdict
	case o.status != 0:
		return nil, &exit.Error{Status: o.status}
	case tooLong:
		return nil, exit.Errorf(exit.TooLong, "once %s: the command has succeeded, but wrote more than %d bytes to standard output: "+
			"nothing is recorded, and the next caller runs it again; raise --max-output, or write to a file", Quoted(o.Names), o.MaxOutput)
	}
	return output, nil
}

// run runs the command until no process of it is left. verdict says why it was stopped, err why
// it did not start.
func (o *once) run(lease *holdfast.Lease) (verdict *exit.Error, err error) {
	output, stdout, err := newCapture(os.Stdout, o.MaxOutput)
	if err != nil {
		return nil, exit.Errorf(execStatus(err), "once %s: %w", o.Args[0], err)
	}
	held := holdOf(lease)
	o.Status.acquired(held)
	tree, err := supervise.Prepare(stdout).Run(o.command(held, stdout))
	_ = stdout.Close() // the command has its own copy
	if err != nil {
		output.end()
		return nil, exit.Errorf(execStatus(err), "once %s: %w", o.Args[0], err)
	}
	o.output = output
	w := newWatch(o.Job, held, time.Now(), tree)
	w.loop()
	if w.refused != nil {
		return w.notEnded(), nil
	}
	o.status = tree.Status
	o.Status.exited(held, o.status)
	if w.ignores(w.verdict) { // the store decides whether the work is recorded
		return nil, nil
	}
	return w.verdict, nil
}

// flush waits until standard output has taken everything, or until a signal asks to end, which it
// returns. The work has ended by then, and its record, if any, is written.
func (o *once) flush() (ended syscall.Signal) {
	for {
		select {
		case <-o.output.done:
			if err := o.output.failed; err != nil {
				o.Warn("once %s: not everything was passed on: %v", Quoted(o.Names), err)
			}
			return 0
		case s := <-o.Signals:
			if sig := s.(syscall.Signal); supervise.Ends(sig) {
				return sig
			}
		}
	}
}

// verdict translates the error of Client.Once.
func (o *once) verdict(err error) error {
	own, isOwn := errors.AsType[*exit.Error](err)
	switch isLost := errors.Is(err, holdfast.ErrLost); {
	case isOwn && (own.Status == exit.Lost || own.Status == exit.MaxHold || !isLost):
		return own
	case errors.Is(err, holdfast.ErrInProgress):
		return exit.With(o.Busy, err)
	case isLost && o.output != nil: // INVARIANT I4: the store has refused the record
		return exit.Errorf(exit.Lost, "once %s: the lease was lost while the command ran, which ended with status %d; "+
			"nothing is recorded", Quoted(o.Names), o.status)
	case err != nil && o.output != nil:
		return exit.FromStore(fmt.Errorf("%w; the command has succeeded", err))
	}
	return exit.FromStore(err)
}
