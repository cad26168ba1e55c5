//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A selfError reports that a command would wait for a lock that is held until the command itself
// has ended. It is holdfast.ErrDeadlock.
type selfError struct {
	HeldLock                  // what the run around the command holds
	Via      *lockinfo.Holder // the client ahead of the command in the queue that waits for that run; nil if the lock itself blocks the command
}

func (e *selfError) Error() string {
	if e.Via != nil {
		return fmt.Sprintf("holdfast: acquire %q: the run around this command holds it, with token %d, and %s, which is next, waits for that: "+
			"this command would wait for itself; leave the inner holdfast out, or use another name", e.Name, e.Token, e.Via)
	}
	return fmt.Sprintf("holdfast: acquire %q: the run around this command holds it, with token %d: "+
		"this command would wait for itself; leave the inner holdfast out, or use another name", e.Name, e.Token)
}

// Is makes errors.Is(err, holdfast.ErrDeadlock) true.
func (e *selfError) Is(target error) bool { return target == holdfast.ErrDeadlock }

// unlessBlocked calls take, which requests the locks of the job, and returns its error. If a lock of
// the runs around this one would block the request for ever, it cancels the context of take and
// returns a *selfError. A lock whose run has ended has no token in the store, and blocks no request.
//
// It checks the locks when the request has been refused. So take must call Acquire or Once with
// options that contain *onWait, which is replaced if those runs hold locks of the same names. If
// they hold none, it costs nothing.
func (j *Job) unlessBlocked(ctx context.Context, onWait *func(holdfast.WaitState), take func(context.Context) error) error {
	if !slices.ContainsFunc(j.Outer, func(lock HeldLock) bool { return slices.Contains(j.Names, lock.Name) }) {
		return take(ctx)
	}
	taking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	refused, looked := make(chan holdfast.WaitState, 1), make(chan struct{})
	tell := *onWait
	go func() { // ends with taking; it is awaited
		defer close(looked)
		j.lookEach(taking, refused, cancel, tell)
	}()
	*onWait = func(s holdfast.WaitState) {
		select {
		case <-refused: // not checked yet, and out of date
		default:
		}
		refused <- s // this is the only sender: there is room
	}
	err := take(taking)
	cancel(nil)
	<-looked
	switch self, ok := errors.AsType[*selfError](context.Cause(taking)); {
	case err == nil: // it was granted all the same
		return nil
	case ok:
		return self
	case errors.Is(err, holdfast.ErrHeld), errors.Is(err, holdfast.ErrInProgress):
		if self := j.look(ctx); self != nil {
			return self
		}
	}
	return err
}

// lookEach checks the locks after each refusal until ctx ends. If the request would wait for
// ever, it cancels take; otherwise it reports the wait.
func (j *Job) lookEach(ctx context.Context, refused <-chan holdfast.WaitState, cancel context.CancelCauseFunc, tell func(holdfast.WaitState)) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-refused:
			if self := j.look(ctx); self != nil {
				cancel(self)
			} else if tell != nil {
				tell(s)
			}
		}
	}
}

// look reads from the store what blocks the request. It returns nil if the request would not wait
// for ever, or if the store does not answer.
func (j *Job) look(ctx context.Context) *selfError {
	for _, name := range j.Names {
		mine := j.Outer.of(name)
		if len(mine) == 0 {
			continue
		}
		lock, err := j.Client.Inspect(ctx, name)
		if err != nil {
			continue
		}
		if self := mine.block(lock, j.Opts.Mode, j.Try); self != nil {
			return self
		}
	}
	return nil
}

// block returns a *selfError if the locks of l, which have one name, block the request. They do
// if, with all other clients gone, the request or one ahead of it in the queue would still not be
// granted.
func (l Held) block(state lockinfo.LockState, mode lockinfo.Mode, try bool) *selfError {
	var view rules.View
	var last HeldLock
	for _, h := range state.Live() {
		if l.has(h.Token) {
			view.AddLease(h.Mode, 1)
			last = HeldLock{Token: h.Token, Name: state.Name}
		}
	}
	if !view.Held {
		return nil
	}
	if !view.Fits(mode) {
		return &selfError{HeldLock: last}
	}
	if try {
		return nil // another client blocks the request now, and the request does not wait
	}
	for _, p := range before(state.Queue) {
		if !view.Fits(p.Mode) {
			return &selfError{last, &p.Holder}
		}
	}
	return nil
}

// before returns the places ahead of this process's own, or all if it has none.
func before(queue []lockinfo.Place) []lockinfo.Place {
	host, _ := os.Hostname() // if this fails, the library uses another text, and no place matches
	for i, p := range queue {
		if p.Holder.PID == os.Getpid() && p.Holder.Host == host {
			return queue[:i]
		}
	}
	return queue
}
