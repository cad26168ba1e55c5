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

// A OnceJob is a command to run unless it was done already. The job's one name
// is the key; the mode is exclusive.
type OnceJob struct {
	Job
	Retention   time.Duration
	Fingerprint string
	MaxOutput   int // bytes
}

// A once is one run of a OnceJob.
type once struct {
	OnceJob
	ended   *exit.Error      // by a signal, before the work began; or nil
	working chan struct{}    // tells that the work takes over the signals
	stuck   chan error       // reports that the lock must not be released
	stopped chan *exit.Error // tells why the command was stopped

	// The work sets these; they are valid when it has ended.
	status int      // of the command
	output *capture // nil unless the command was started
}

// Once runs the job and returns what the command wrote to standard output, or
// what it wrote when it was done before: the result is Replayed then, and
// nothing has run. What a command writes is also passed on while it runs.
//
// The error is an *exit.Error with the status to exit with, and nothing is
// recorded; with exit.Unavailable it may be, if the command ran.
func Once(ctx context.Context, j OnceJob) (holdfast.OnceResult, error) {
	j.verb = "once"
	o := &once{OnceJob: j, working: make(chan struct{}), stuck: make(chan error), stopped: make(chan *exit.Error, 1)}
	result, ended, err := o.await(ctx)
	var own *exit.Error
	if errors.As(err, &own) && own.KeepLock {
		return result, own
	}
	if o.output != nil && ended == 0 {
		ended = o.flush()
	}
	switch {
	case err == nil && ended != 0 && !result.Replayed:
		return result, exit.With(exit.Signal(int(ended)), fmt.Errorf(
			"once %s: it is done and recorded; ended by a signal while standard output did not take all of it", Quoted(j.Names)))
	case err != nil && ended != 0 && o.output == nil:
		return result, o.ended
	}
	return result, o.verdict(err)
}

// await waits for the end of it all. Until the work begins, a signal that asks
// to end ends the wait; await returns it.
func (o *once) await(ctx context.Context) (_ holdfast.OnceResult, ended syscall.Signal, _ error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		holdfast.OnceResult
		err error
	}
	done := make(chan outcome, 1)
	go func() { // ends with ctx or with the command; it is awaited, but not for long after a loss
		result, err := o.take(ctx)
		done <- outcome{result, err}
	}()
	signals, working := o.Signals, o.working
	var verdict *exit.Error
	var late <-chan time.Time
	for {
		select {
		case s := <-signals:
			if sig := s.(syscall.Signal); supervise.Ends(sig) && ended == 0 {
				ended, late = sig, time.After(endWithin)
				o.ended = endedBy(sig, "once: ended by a signal before the command was started")
				cancel()
			}
		case <-working:
			signals = nil
		case err := <-o.stuck:
			return holdfast.OnceResult{}, 0, err
		case verdict = <-o.stopped:
			late = time.After(time.Until(endBy(verdict)))
		case <-late:
			if verdict == nil {
				return holdfast.OnceResult{}, ended, context.Canceled
			}
			return holdfast.OnceResult{}, ended, verdict
		case r := <-done:
			return r.OnceResult, ended, r.err
		}
	}
}

// take calls Once, under a lease that has its whole TTL. It does not wait for a run
// around this one.
func (o *once) take(ctx context.Context) (result holdfast.OnceResult, err error) {
	opts := holdfast.OnceOptions{
		TTL: o.Opts.TTL, Retention: o.Retention, Await: o.Await(), WholeTTL: true, Fingerprint: o.Fingerprint,
		MaxResult: o.MaxOutput, MaxHold: o.Opts.MaxHold, Reason: o.Opts.Reason, Labels: o.Opts.Labels, OnWait: o.Opts.OnWait,
	}
	want := wantOf(&o.Opts, o.Try, o.Names...)
	err = o.Outer.Take(ctx, o.Client, want, &opts.OnWait, func(ctx context.Context) error {
		result, err = o.Client.Once(ctx, o.Names[0], &opts, o.work)
		return err
	})
	return result, err
}

// work runs the command under a lease and returns its output.
func (o *once) work(ctx context.Context, lease *holdfast.Lease) ([]byte, error) {
	o.working <- struct{}{} // the signals are for the command from now on
	if ctx.Err() != nil {   // by a signal, or the lease is lost
		return nil, context.Cause(ctx)
	}
	o.Line.End()
	verdict, err := o.run(lease)
	switch {
	case err != nil:
		return nil, exit.With(execStatus(err), fmt.Errorf("once %s: %w", o.Args[0], err))
	case verdict != nil:
		o.output.end()
		o.stopped <- verdict
		return nil, verdict
	}
	output, tooLong := o.output.end()
	switch {
	case o.status != 0:
		return nil, &exit.Error{Status: o.status}
	case tooLong:
		return nil, exit.With(exit.TooLong, fmt.Errorf("once %s: the command has succeeded, but wrote more than %d bytes to standard output: "+
			"nothing is recorded, and the next caller runs it again; raise --max-output, or write to a file", Quoted(o.Names), o.MaxOutput))
	}
	return output, nil
}

// run runs the command until nothing of it is left. The verdict says why it
// was stopped; err that it did not start.
func (o *once) run(lease *holdfast.Lease) (verdict *exit.Error, err error) {
	output, stdout, err := newCapture(os.Stdout, o.MaxOutput)
	if err != nil {
		return nil, err
	}
	held := holdOf(lease)
	o.Status.acquired(held)
	tree, err := supervise.Prepare(stdout).Run(o.command(held, stdout))
	_ = stdout.Close() // of a pipe, and the command has its own
	if err != nil {
		output.end()
		return nil, err
	}
	o.output = output
	w := newWatch(o.Job, held, time.Now(), tree)
	w.loop()
	tree.Close()
	if err := w.notEnded(); err != nil {
		o.stuck <- err
		select {} // until the program ends: returning would release the lock
	}
	o.status = tree.Status()
	o.Status.exited(held, o.status)
	if w.ignores(w.verdict) { // the store decides whether it is recorded
		return nil, nil
	}
	return w.verdict, nil
}

// flush waits until standard output has taken everything, or until a signal
// that asks to end. By then the work has ended, and is recorded if it will be.
func (o *once) flush() (ended syscall.Signal) {
	for {
		select {
		case <-o.output.done:
			if err := o.output.failure(); err != nil {
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
	var own *exit.Error
	isOwn, isLost := errors.As(err, &own), errors.Is(err, holdfast.ErrLost)
	switch {
	case isOwn && (own.Status == exit.Lost || own.Status == exit.MaxHold || !isLost):
		return own
	case errors.Is(err, holdfast.ErrInProgress):
		return exit.With(o.Busy, err)
	case isLost && o.output != nil: // INVARIANT I4: the store has refused the record
		return exit.With(exit.Lost, fmt.Errorf("once %s: the lease was lost while the command ran, which ended with status %d; "+
			"nothing is recorded", Quoted(o.Names), o.status))
	case err != nil && o.output != nil:
		return exit.FromStore(fmt.Errorf("%w; the command has succeeded", err))
	}
	return exit.FromStore(err)
}
