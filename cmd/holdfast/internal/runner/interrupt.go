//go:build unix

package runner

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

const (
	// endWithin is how long a waiting run may take to end after a signal: long enough to free its
	// place in a reachable store, and short enough to end within 100 ms after the signal, even on
	// a busy machine.
	endWithin = 50 * time.Millisecond

	// releaseWithin is the same for a run that has a lock, or may have some of several. On a busy
	// machine a release may take longer than endWithin, and a lock that is not released lasts for
	// its TTL. A place in the queue lasts for at most 5 s.
	releaseWithin = time.Second
)

// Catch returns a channel that delivers the signals for a job from now on. From then on, a reader
// of our output or messages that goes away ends neither this process nor, through it, the
// command.
func Catch() chan os.Signal {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 16)
	supervise.Catch(signals)
	return signals
}

// UnlessEnded calls f and returns its results. A signal that asks to end cancels the context of
// f, which then has until ended.EndBy. If f takes longer, UnlessEnded returns without it, and f
// runs until the program ends. If f has a result all the same, the caller must release it:
// ended.EndBy leaves time for that. message says what has ended.
func UnlessEnded[T any](
	ctx context.Context, signals <-chan os.Signal, message string, f func(context.Context) (T, error),
) (result T, ended *exit.Error, err error) {
	return unlessEnded(ctx, signals, supervise.Ends, endWithin, message, f)
}

// unlessEnded is UnlessEnded for the signals for which ends reports true. It gives f the time
// within to end.
func unlessEnded[T any](
	ctx context.Context, signals <-chan os.Signal, ends func(syscall.Signal) bool, within time.Duration, message string, f func(context.Context) (T, error),
) (result T, ended *exit.Error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() { // ends with ctx; it is awaited for as long as there is time
		result, err := f(ctx)
		done <- outcome{result, err}
	}()
	var late <-chan time.Time
	for {
		select {
		case s := <-signals:
			if sig := s.(syscall.Signal); ends(sig) && ended == nil {
				ended = &exit.Error{Status: exit.Signal(sig), Err: errors.New(message), EndBy: time.Now().Add(within)}
				late = time.After(within)
				cancel()
			}
		case r := <-done:
			if ended != nil && r.err == nil {
				ended.EndBy = time.Now().Add(releaseWithin)
			}
			return r.result, ended, r.err
		case <-late:
			return result, ended, context.Canceled
		}
	}
}
