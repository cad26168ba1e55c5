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

// A want is the lock request of a command.
type want struct {
	Names []string // one, or several at once
	Mode  lockinfo.Mode
	Try   bool // it does not wait
}

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

// Take calls take, which requests w, and returns its error. If one of the locks would block the
// request for ever, Take cancels the context of take and returns a *selfError. A lock whose run
// has ended has no token in the store, and blocks no request.
//
// Take checks the locks when the request has been refused. So take must call Acquire or Once with
// options that contain *onWait, which Take replaces if l has locks of these names. If l has none,
// Take costs nothing.
func (l Held) Take(ctx context.Context, c *holdfast.Client, w want, onWait *func(holdfast.WaitState), take func(context.Context) error) error {
	if !slices.ContainsFunc(l, func(lock HeldLock) bool { return slices.Contains(w.Names, lock.Name) }) {
		return take(ctx)
	}
	taking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	refused, looked := make(chan holdfast.WaitState, 1), make(chan struct{})
	tell := *onWait
	go func() { // ends with taking; it is awaited
		defer close(looked)
		l.lookEach(taking, c, w, refused, cancel, tell)
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
		if self := l.look(ctx, c, w); self != nil {
			return self
		}
	}
	return err
}

// lookEach checks the locks after each refusal until ctx ends. If the request would wait for
// ever, it cancels take; otherwise it reports the wait.
func (l Held) lookEach(
	ctx context.Context, c *holdfast.Client, w want, refused <-chan holdfast.WaitState, cancel context.CancelCauseFunc, tell func(holdfast.WaitState),
) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-refused:
			if self := l.look(ctx, c, w); self != nil {
				cancel(self)
			} else if tell != nil {
				tell(s)
			}
		}
	}
}

// look reads from the store what blocks the request. It returns nil if the request would not wait
// for ever, or if the store does not answer.
func (l Held) look(ctx context.Context, c *holdfast.Client, w want) *selfError {
	for _, name := range w.Names {
		mine := l.of(name)
		if len(mine) == 0 {
			continue
		}
		lock, err := c.Inspect(ctx, name)
		if err != nil {
			continue
		}
		if self := mine.block(lock, w); self != nil {
			return self
		}
	}
	return nil
}

// block returns a *selfError if the locks of l, which have one name, block the request. They do
// if, with all other clients gone, the request or one ahead of it in the queue would still not be
// granted.
func (l Held) block(state lockinfo.LockState, w want) *selfError {
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
	if !view.Fits(w.Mode) {
		return &selfError{HeldLock: last}
	}
	if w.Try {
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
