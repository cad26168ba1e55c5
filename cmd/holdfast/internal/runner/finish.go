//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

// settle is for processes that end with the command, as the readers of its
// pipes do: the user need not know of them.
const settle = 50 * time.Millisecond

// nameLeft tells the user which processes of a command that has ended by itself
// work on without the lock.
func (w *watch) nameLeft() {
	if w.verdict != nil { // ignored, and told already
		return
	}
	select {
	case <-w.tree.Gone():
		return
	case <-time.After(settle):
	}
	if left := w.tree.Left(); len(left) > 0 {
		w.Warn("%s %s: the command has ended, and processes that it left work on without the lock: %s (--wait-children keeps the lock until they have ended)",
			w.verb, Quoted(w.Names), list(left))
	}
}

// listed is how many processes a message names.
const listed = 5

// list returns processes as messages show them.
func list(processes []supervise.Process) string {
	names := show.Each(processes[:min(len(processes), listed)], supervise.Process.String)
	if more := len(processes) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

const (
	// lateEnd is how long release and clean-up may take together after a job that
	// was lost: most likely the store is out of reach, and the lock is somebody
	// else's or free soon anyhow. It is half of the 300 ms that are promised, so
	// that a busy machine has as much again.
	lateEnd = 150 * time.Millisecond

	// maxHoldRelease bounds the release after --max-hold, or without heartbeats: the
	// store is well, but the lease may be about to end by itself.
	maxHoldRelease = time.Second
)

// end releases the lock and returns the status of the job.
func (w *watch) end(ctx context.Context) error {
	status := w.tree.Status()
	if w.refused == nil {
		w.Status.exited(w.held, status)
	}
	if err := w.notEnded(); err != nil {
		return err
	}
	if w.verdict != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, endBy(w.verdict))
		defer cancel()
	}
	gone := w.release(ctx, w.held)
	switch {
	case w.ignores(w.verdict):
	case w.verdict != nil:
		return w.verdict
	case gone != nil:
		return exit.Errorf(exit.Lost, "%s %s: the command ended with status %d, but its lease had ended before: %w", w.verb, Quoted(w.Names), status, gone)
	}
	if status == 0 {
		return nil
	}
	return &exit.Error{Status: status}
}

// endBy returns the deadline of a release after the job had to be stopped. After a loss
// the program ends then, too. It is called once, when the job has ended.
func endBy(verdict *exit.Error) time.Time {
	if verdict.Status == exit.MaxHold || errors.Is(verdict, holdfast.ErrStalled) {
		return time.Now().Add(maxHoldRelease)
	}
	verdict.EndBy = time.Now().Add(lateEnd)
	return verdict.EndBy
}

// notEnded returns an error that names the processes which could not be killed, or nil. The
// lock is not released while they are at work: it lasts until its expiry.
func (w *watch) notEnded() *exit.Error {
	if w.refused == nil {
		return nil
	}
	return &exit.Error{Status: exit.Lost, KeepLock: true, Err: fmt.Errorf(
		"%s %s: not permitted to end %s: the lock is not released, and expires in %s",
		w.verb, Quoted(w.Names), list(w.refused), w.left().Round(time.Millisecond))}
}
