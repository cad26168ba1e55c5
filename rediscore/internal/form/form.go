// Package form writes values as the store keeps them, reads them back, and explains
// errors of those that cannot be read.
package form

import (
	"fmt"
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// MaxTTL bounds what is taken for a TTL: the greatest that fits into a
// time.Duration, in whole milliseconds.
const MaxTTL = (1<<63 - 1) / time.Millisecond * time.Millisecond

// MS writes a duration as decimal milliseconds.
func MS(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// US writes a duration as decimal microseconds.
func US(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

// Flag writes 1 for yes.
func Flag(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}

// Token writes a token in decimal.
func Token(token uint64) string { return strconv.FormatUint(token, 10) }

// ReadToken reads a token in decimal.
func ReadToken(s string) (uint64, error) {
	token, err := strconv.ParseUint(s, 10, 64)
	if err != nil || token > driver.MaxToken {
		return 0, fmt.Errorf("%q is not a token", s)
	}
	return token, nil
}

// A Holders writes holders, and remembers the last one: most clients are always the
// same. The zero Holders is ready, and safe for concurrent use.
type Holders struct{ last atomic.Pointer[written] }

type written struct {
	holder lockinfo.Holder
	text   string
}

// Text writes a holder.
func (w *Holders) Text(h lockinfo.Holder) string {
	if last := w.last.Load(); last != nil && same(last.holder, h) {
		return last.text
	}
	last := &written{h, holders.Text(h)}
	last.holder.Labels = maps.Clone(h.Labels) // the caller's may change
	w.last.Store(last)
	return last.text
}

// same reports whether two holders are written alike.
func same(a, b lockinfo.Holder) bool {
	return a.Host == b.Host && a.PID == b.PID && a.User == b.User && a.Program == b.Program && a.Label == b.Label && a.Reason == b.Reason &&
		a.Person == b.Person && a.Caller == b.Caller && a.Once == b.Once && a.Fingerprint == b.Fingerprint &&
		maps.Equal(a.Labels, b.Labels)
}

// ExpiresIn turns the milliseconds that a key has left into a duration. A key
// that has none left still lives for a part of a millisecond.
func ExpiresIn(ms int64) time.Duration {
	if ms < 0 || ms > MaxTTL.Milliseconds() {
		return lockinfo.Never
	}
	return time.Duration(max(ms, 1)) * time.Millisecond
}

// Ago turns the microseconds since an instant into a duration, which is never
// negative: a clock that went back has not reached the instant yet.
func Ago(us int64) time.Duration {
	return time.Duration(min(max(us, 0), MaxTTL.Microseconds())) * time.Microsecond
}

// Read reports whether a reply is a list of as many items as there are places
// to put them, of their types: each place is an *int64, *string, *[]any or *any.
func Read(reply any, places ...any) (ok bool) {
	items, ok := reply.([]any)
	ok = ok && len(items) == len(places)
	for i := 0; ok && i < len(items); i++ {
		switch place := places[i].(type) {
		case *int64:
			*place, ok = items[i].(int64)
		case *string:
			*place, ok = items[i].(string)
		case *[]any:
			*place, ok = items[i].([]any)
		case *any:
			*place = items[i]
		}
	}
	return ok
}

// Malformed reports a reply that no script of ours gives.
func Malformed(op string, reply any) error {
	return fmt.Errorf("the server's reply to %s makes no sense: %.100q", op, fmt.Sprint(reply))
}

// WrongKind reports leases or places of another kind.
func WrongKind(limit int64) error {
	if limit == 0 {
		return fmt.Errorf("%w: the name is in use as a lock, not as a semaphore; use another name", driver.ErrKindMismatch)
	}
	return fmt.Errorf("%w: the name is in use as a semaphore of %d permits; use the same limit or another name", driver.ErrKindMismatch, limit)
}

// NoLastToken reports a last token that is not a number below MaxToken.
func NoLastToken() error {
	return fmt.Errorf("%w: the key of its last token holds no usable token: another program wrote to it; delete it, and acquire with a MinToken that the resource has seen",
		driver.ErrKindMismatch)
}
