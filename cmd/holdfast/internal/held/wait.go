package held

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
)

// A Want is what a command asks for.
type Want struct {
	Names []string // one, or several at once
	Need  rules.Need
	Try   bool // it does not wait
}

// WantOf returns what an acquire of names with these options asks for.
func WantOf(o *holdfast.AcquireOptions, try bool, names ...string) Want {
	n := rules.Need{Mode: o.Mode}
	if o.Mode == holdfast.Semaphore {
		n.Limit, n.Permits = o.Limit, max(o.Permits, 1)
	}
	return Want{names, n, try}
}

// A SelfError says that a command asked for a lock that it would get only when it
// has ended itself. It is holdfast.ErrDeadlock.
type SelfError struct {
	Lock                // what the run around the command holds
	Via  *driver.Holder // who is before the command in the queue, and waits for that run; nil if the lock itself is in the way
}

func (e *SelfError) Error() string {
	if e.Via != nil {
		return fmt.Sprintf("holdfast: acquire %q: the run around this command holds it, with token %d, and %s, which is next, waits for that: "+
			"this command would wait for itself; leave the inner holdfast out, or use another name", e.Name, e.Token, e.Via)
	}
	return fmt.Sprintf("holdfast: acquire %q: the run around this command holds it, with token %d: "+
		"this command would wait for itself; leave the inner holdfast out, or use another name", e.Name, e.Token)
}

// Is makes errors.Is(err, holdfast.ErrDeadlock) true.
func (e *SelfError) Is(target error) bool { return target == holdfast.ErrDeadlock }

// Take calls take, which asks for what w says, and returns its error. If one of
// the locks keeps the request waiting for ever, it ends the context of take, and
// the error is a *SelfError. A lock whose run is over, so that its token is nowhere
// in the store, is in nobody's way, whoever has its name now.
//
// It looks when the request has been refused: take must call Acquire or Once with
// options that have *onWait, which Take sets for that if anything is held under
// the names. If nothing is, it costs nothing.
func (l Locks) Take(ctx context.Context, c *holdfast.Client, w Want, onWait *func(holdfast.WaitState), take func(context.Context) error) error {
	if !l.concern(w.Names) {
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
		case <-refused: // not looked at yet, and out of date
		default:
		}
		refused <- s // nobody else sends: there is room
	}
	err := take(taking)
	cancel(nil)
	<-looked
	switch self := (*SelfError)(nil); {
	case err == nil: // it was granted all the same
		return nil
	case errors.As(context.Cause(taking), &self):
		return self
	case errors.Is(err, holdfast.ErrHeld), errors.Is(err, holdfast.ErrInProgress):
		if self := l.look(ctx, c, w); self != nil {
			return self
		}
	}
	return err
}

// lookEach looks whenever the request was refused, until ctx ends, and cancels it
// if that is for ever; if not, it tells of the wait.
func (l Locks) lookEach(
	ctx context.Context, c *holdfast.Client, w Want, refused <-chan holdfast.WaitState, cancel context.CancelCauseFunc, tell func(holdfast.WaitState),
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

// concern reports whether anything is held under one of the names.
func (l Locks) concern(names []string) bool {
	for _, name := range names {
		if len(l.of(name)) > 0 {
			return true
		}
	}
	return false
}

// look asks the store what is in the way, and returns a *SelfError or nil. If the
// store does not tell, nothing is known.
func (l Locks) look(ctx context.Context, c *holdfast.Client, w Want) *SelfError {
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

// block returns why a request would wait for one of the locks, which are those of
// one name: even if everybody else gave back what they have, it would not fit
// beside them, or somebody who is before it in the queue would not.
func (l Locks) block(state driver.Lock, w Want) *SelfError {
	var view rules.View
	var last Lock
	for _, h := range state.Live() {
		if l.has(h.Token) {
			view.AddLease(rules.Need{Mode: state.Mode, Limit: state.Limit, Permits: h.Permits}, 1)
			last = Lock{Token: h.Token, Name: state.Name}
		}
	}
	if !view.Held {
		return nil
	}
	if !view.Fits(w.Need) {
		return &SelfError{Lock: last}
	}
	if w.Try {
		return nil // it is somebody else who is in the way now, and it does not wait
	}
	for _, p := range before(state.Queue) {
		if !view.Fits(rules.Need{Mode: p.Mode, Limit: state.Limit, Permits: p.Permits}) {
			return &SelfError{last, &p.Holder}
		}
	}
	return nil
}

// before returns the places that are before that of this process, or all if it has
// none among them.
func before(queue []driver.Waiting) []driver.Waiting {
	host, _ := os.Hostname() // the library takes another text if this fails: then nobody is this process
	for i, p := range queue {
		if p.Holder.PID == os.Getpid() && p.Holder.Host == host {
			return queue[:i]
		}
	}
	return queue
}
