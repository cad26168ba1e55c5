package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// LeadOptions are the options of Client.Lead. Nil is default; a zero field is default.
type LeadOptions struct {
	// Acquire are the options of each acquire. The Mode must be Exclusive, because
	// a leader is alone, and there is no MaxWait: a candidate campaigns until its context
	// ends. With MaxHold the lead rotates.
	Acquire AcquireOptions

	// Pause is how long a candidate stays away after its fn has failed, or the store
	// has not answered. It is doubled with each failure, up to LongestPause, and is
	// Pause again when fn has led for LongestPause. Half of it is random.
	// Default: 1 second, and 1 minute.
	Pause        time.Duration
	LongestPause time.Duration

	// Failed is called when fn or the acquire has failed, with the pause before this
	// candidate campaigns again: 0 after a lost lead that was longer than Pause. Default: none.
	Failed func(err error, pause time.Duration)
}

// LeadLabel is the label of leaders and candidates, with the value "1". It shows people
// and programs that a lock is a lead.
const LeadLabel = "holdfast/lead"

const (
	defaultPause        = time.Second
	defaultLongestPause = time.Minute
)

// Lead campaigns to lead name, and runs fn while this process leads: while it has
// the lock of that name. It does so again and again, until fn returns nil or ctx ends.
//
// The context of fn ends when ctx does, and when the lead is lost, with a cause that is
// ErrLost. fn must then stop: another candidate may lead from the deadline of its lease on.
// When fn has returned the lock is released, and the next candidate has it at once;
// it is never released before.
//
//   - fn returns nil: its work is done, and Lead returns nil, unless the lead was lost
//     meanwhile.
//   - fn returns an error: another candidate may do better. The lock is released, and
//     this candidate campaigns again after a pause. The same applies if fn stalls, see
//     AcquireOptions.StallAfter.
//   - The lead is lost: this candidate campaigns again at once, or after a pause if it has
//     led for less than LeadOptions.Pause.
//   - fn panics: the lock is released, and the panic goes on.
//
// Lead returns ctx's error when ctx has ended, together with fn's, or with the leader
// (ErrHeld), if that adds something, and otherwise an error of an acquire that another
// attempt would meet again: ErrInvalid,
// ErrPermission, ErrKindMismatch, ErrUnsupported, ErrDeadlock, ErrClosed. If the store
// does not answer, Lead tries again.
func (c *Client) Lead(ctx context.Context, name string, opts *LeadOptions, fn func(ctx context.Context, l *Lease) error) error {
	o, err := opts.resolve()
	if err == nil && fn == nil {
		err = errNoWork
	}
	if err = cmp.Or(c.check(), err); err != nil {
		return opError("lead", name, err)
	}
	again := ask.Backoff{First: o.Pause}
	for {
		var began time.Time // when fn was called; zero if it was not
		var lead *Lease     // under which it was called
		err := c.Do(ctx, name, &o.Acquire, func(ctx context.Context, l *Lease) error {
			began, lead = time.Now(), l
			return fn(ctx, l)
		})
		led := time.Duration(0)
		if !began.IsZero() {
			led = time.Since(began)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return endOfLead(ctx, name, err)
		case c.isClosed():
			return opError("lead", name, ErrClosed)
		case began.IsZero() && hopeless(err):
			return err
		}
		if led >= o.LongestPause {
			again = ask.Backoff{First: o.Pause}
		}
		pause := time.Duration(0)
		lost := lead != nil && isLost(lead.Release(ctx)) // the result of Do's call; err may be about another lease
		if failed := !lost || errors.Is(err, ErrStalled); failed || led < o.Pause {
			pause = again.Next(o.LongestPause)
		}
		if o.Failed != nil {
			o.Failed(err, pause)
		}
		if !ask.Sleep(ctx, pause) {
			return endOfLead(ctx, name, err)
		}
	}
}

// endOfLead returns the error of ctx, which has ended, together with err if that adds something.
func endOfLead(ctx context.Context, name string, err error) error {
	if errors.Is(err, ctx.Err()) {
		return err
	}
	return opError("lead", name, fmt.Errorf("%w: %w", ask.ContextError(ctx), err))
}

// hopeless reports whether another acquire would end in the same way.
func hopeless(err error) bool {
	return driver.Permanent(err) && !isLost(err) || errors.Is(err, ErrDeadlock)
}

// resolve returns a copy of o with the defaults filled in, or an error that wraps
// ErrInvalid.
func (o *LeadOptions) resolve() (LeadOptions, error) {
	c := *cmp.Or(o, &LeadOptions{})
	labels := map[string]string{LeadLabel: "1"}
	maps.Copy(labels, c.Acquire.Labels)
	c.Acquire.Labels = labels
	c.Pause = cmp.Or(c.Pause, defaultPause)
	c.LongestPause = cmp.Or(c.LongestPause, max(c.Pause, defaultLongestPause))
	switch {
	case c.Acquire.Mode != Exclusive:
		return c, fmt.Errorf("%w Mode %s: a leader is alone", ErrInvalid, c.Acquire.Mode)
	case c.Acquire.MaxWait != 0:
		return c, fmt.Errorf("%w MaxWait %s: a candidate stands until its context ends", ErrInvalid, c.Acquire.MaxWait)
	case c.Pause < 0 || c.LongestPause < c.Pause:
		return c, fmt.Errorf("%w Pause %s, LongestPause %s: want the longest to be at least the first", ErrInvalid, c.Pause, c.LongestPause)
	}
	return c, nil
}
