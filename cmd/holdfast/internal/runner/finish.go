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

// settle is how long processes may outlive the command without being reported. The readers of its
// pipes, for example, end shortly after it.
const settle = 50 * time.Millisecond

// nameLeft warns the user of processes that go on without the lock after their command has ended
// by itself.
func (w *watch) nameLeft() {
	if w.verdict != nil { // ignored, and reported already
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
	// lateEnd bounds release and clean-up together after a loss. Most likely the store is
	// unreachable, and the lock belongs to another client or is about to expire. lateEnd is half
	// of the promised 300 ms, which leaves as much again for a busy machine.
	lateEnd = 150 * time.Millisecond

	// maxHoldRelease bounds the release after --max-hold or without heartbeats. The store
	// answers, but the lease may be about to expire.
	maxHoldRelease = time.Second
)

// end releases the lock and returns the status of the job.
func (w *watch) end(ctx context.Context) error {
	status := w.tree.Status
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

// endBy returns the deadline of the release after the job was stopped. After a loss it is the
// deadline of the program, too. It is called once, when the job has ended.
func endBy(verdict *exit.Error) time.Time {
	if verdict.Status == exit.MaxHold || errors.Is(verdict, holdfast.ErrStalled) {
		return time.Now().Add(maxHoldRelease)
	}
	verdict.EndBy = time.Now().Add(lateEnd)
	return verdict.EndBy
}

// notEnded returns an error that names the processes that could not be killed, or nil. While they
// run, the lock is not released but lasts until it expires.
func (w *watch) notEnded() *exit.Error {
	if w.refused == nil {
		return nil
	}
	return &exit.Error{Status: exit.Lost, KeepLock: true, Err: fmt.Errorf(
		"%s %s: not permitted to end %s: the lock is not released, and expires in %s",
		w.verb, Quoted(w.Names), list(w.refused), w.left().Round(time.Millisecond))}
}
