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
	// endWithin is how long a run that waits takes to end after a signal, at most: long
	// enough for a store that is there to hear that the place is free, and short enough
	// to end within 100 ms after the signal, even on a busy machine.
	endWithin = 50 * time.Millisecond

	// releaseWithin is the same for a run that has a lock, or may have some of several. A busy
	// machine may need longer than endWithin for a release, and a lock that is left lasts for its
	// TTL. A place lasts for 5 s at most.
	releaseWithin = time.Second
)

// Catch returns the signals that a job is to hear of, from now on. A reader of our
// output or messages that goes away ends neither us nor, through us, the command.
func Catch() chan os.Signal {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 16)
	supervise.Catch(signals)
	return signals
}

// UnlessEnded calls f, and returns what it returns. A signal that asks to end ends the context
// of f, which has until ended.EndBy then; if it takes longer, it is left to the end of the
// program. A result that comes all the same is to be released: ended.EndBy has time for that.
// message names what has ended.
func UnlessEnded[T any](
	ctx context.Context, signals <-chan os.Signal, message string, f func(context.Context) (T, error),
) (result T, ended *exit.Error, err error) {
	return unlessEnded(ctx, signals, supervise.Ends, endWithin, message, f)
}

// unlessEnded is UnlessEnded for an f that has so much time to end, after the signals for which
// ends reports true.
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
