// Package form formats values for the store, parses them, and returns the errors for values that
// cannot be parsed.
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

// MaxTTL is the greatest accepted TTL: the greatest time.Duration in whole milliseconds.
const MaxTTL = (1<<63 - 1) / time.Millisecond * time.Millisecond

// MS formats a duration as decimal milliseconds.
func MS(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// US formats a duration as decimal microseconds.
func US(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

// Flag returns "1" for true and "0" for false.
func Flag(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}

// Token formats a token in decimal.
func Token(token uint64) string { return strconv.FormatUint(token, 10) }

// ReadToken parses a decimal token.
func ReadToken(s string) (uint64, error) {
	token, err := strconv.ParseUint(s, 10, 64)
	if err != nil || token > driver.MaxToken {
		return 0, fmt.Errorf("%q is not a token", s)
	}
	return token, nil
}

// Holders formats holders, and caches the latest one, because the requests of a client mostly have
// the same holder. The zero Holders is ready to use, and safe for concurrent use.
type Holders struct{ last atomic.Pointer[written] }

type written struct {
	holder lockinfo.Holder
	text   string
}

// Text formats a holder.
func (w *Holders) Text(h lockinfo.Holder) string {
	if last := w.last.Load(); last != nil && holders.Equal(last.holder, h) {
		return last.text
	}
	last := &written{h, holders.Text(h)}
	last.holder.Labels = maps.Clone(h.Labels) // the caller may change its map
	w.last.Store(last)
	return last.text
}

// ExpiresIn converts the milliseconds until a key expires into a duration. A key with 0 ms left
// still lives for a fraction of a millisecond.
func ExpiresIn(ms int64) time.Duration {
	if ms < 0 || ms > MaxTTL.Milliseconds() {
		return lockinfo.Never
	}
	return time.Duration(max(ms, 1)) * time.Millisecond
}

// Ago converts the microseconds since an instant into a duration. It is not negative even if the
// clock went back to before the instant.
func Ago(us int64) time.Duration {
	return time.Duration(min(max(us, 0), MaxTTL.Microseconds())) * time.Microsecond
}

// Read reports whether a reply is a list with one item of the right type for each of places, and
// stores the items there. Each place is an *int64, *string, *[]any or *any.
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

// Malformed returns the error for a reply that no script of holdfast gives.
func Malformed(op string, reply any) error {
	return fmt.Errorf("the server's reply to %s makes no sense: %.100q", op, fmt.Sprint(reply))
}

// WrongKind returns the error for a name whose leases or places are of another kind.
func WrongKind(limit int64) error {
	if limit == 0 {
		return fmt.Errorf("%w: the name is in use as a lock, not as a semaphore; use another name", driver.ErrKindMismatch)
	}
	return fmt.Errorf("%w: the name is in use as a semaphore of %d permits; use the same limit or another name", driver.ErrKindMismatch, limit)
}

// NoLastToken returns the error for a last token that is not a number up to MaxToken.
func NoLastToken() error {
	return fmt.Errorf("%w: the key of its last token holds no usable token: another program wrote to it; delete it, and acquire with a MinToken that the resource has seen",
		driver.ErrKindMismatch)
}
