package onetime

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/observe"
)

// The limits of durations and lengths. A value outside them is
// holdfast.ErrInvalid.
const (
	MinTTL     = holdfast.MinTTL
	MaxTTL     = holdfast.MaxRetention // about ten years; the limit of Memory, too
	MaxPayload = driver.MaxPayload     // 64 KiB

	// MinMemory is longer than a late copy of an Issue may be under way. The
	// store must know the token for that time, so that the copy does not make
	// it fresh again. It is longer than driver.RedeemGrace, too.
	MinMemory = driver.TombstoneTTL

	minRequestID, maxRequestID = 16, 256 // bytes
)

// Options configure a Service. Nil options are the defaults; a zero field is default.
type Options struct {
	// Name of the collection: a secret is only known in the collection that
	// issued it, and pruning locks its name. All processes that redeem must use
	// the same.
	// Up to 400 bytes, as for the name of a lock. Default: "onetime".
	Name string

	// Memory is how long after its TTL a token is still known as expired,
	// redeemed or revoked. 1 minute to about ten years. Default: 24 hours.
	Memory time.Duration

	// MaxPayload is the greatest length of a payload in bytes, up to the
	// constant MaxPayload, which is the default.
	MaxPayload int

	// RequestTimeout bounds how long one request is repeated until the store
	// answers. 10 ms to 15 seconds. Default: 5 seconds.
	RequestTimeout time.Duration

	// PruneEvery is the longest pause between two rounds of pruning, on a
	// store that does not forget by itself. The pause is shorter by up to a
	// quarter, at random, so that replicas do not prune together. 1 second to
	// 24 hours. Default: 10 minutes.
	PruneEvery time.Duration

	// PruneBatch is how many tokens one step of pruning deletes, while redeems
	// wait. Up to driver.MaxPrune. Default: 500.
	PruneBatch int

	// Failures limits failed redeems; see RedeemOptions.Caller.
	Failures FailureLimit

	// Observer receives the events of tokens, never with a secret or a payload. It may
	// be nil. See package observe.
	Observer observe.Observer
}

// A FailureLimit bounds how many redeems of one caller may fail, by a token
// bucket in the memory of this process: n replicas allow n times as much, and a
// restart begins anew. A zero field is default.
type FailureLimit struct {
	// Burst is how many may fail in a row. Default: 10.
	Burst int
	// Every is how long it takes until another one may. Default: 6 seconds.
	Every time.Duration
	// MaxCallers is how many callers with failures are remembered, at less
	// than 300 bytes each. For one more, the Service forgets one of a few
	// random callers: the one with the fewest failures. Default: 10,000.
	MaxCallers int
}

// RedeemOptions are the options of one redeem. Nil options are the defaults; a
// zero field is default.
type RedeemOptions struct {
	// RequestID makes it safe to redeem again when the reply to an earlier
	// call was lost, on its way to this process or on to its own client. For
	// driver.RedeemGrace (30 seconds) the same secret with the same ID returns
	// the payload again, in any process. With another ID, or none, it returns
	// ErrRedeemed. The caller must draw a new ID for each secret, with at
	// least 128 random bits, such as crypto/rand.Text or a random UUID: 16 to
	// 256 bytes. Without one, only this call repeats its request.
	RequestID string

	// Caller is the client on whose behalf the token is redeemed, such as its address, for the
	// limit of failed redeems: one that has failed too often gets
	// ErrTooManyAttempts. Only a wrong secret or token counts, not redeems that succeed, nor a
	// store that does not answer. If as many attempts are under way as the caller may still
	// fail, the next one waits for one of them. Empty: no limit.
	Caller string
}

// resolve returns a copy of o with the defaults filled in, or an error that
// wraps ErrInvalid.
func (o *Options) resolve() (Options, error) {
	c := *cmp.Or(o, &Options{})
	c.Name = cmp.Or(c.Name, "onetime")
	c.Memory = cmp.Or(c.Memory, 24*time.Hour)
	c.MaxPayload = cmp.Or(c.MaxPayload, MaxPayload)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 5*time.Second)
	c.PruneEvery = cmp.Or(c.PruneEvery, 10*time.Minute)
	c.PruneBatch = cmp.Or(c.PruneBatch, 500)
	c.Failures.Burst = cmp.Or(c.Failures.Burst, 10)
	c.Failures.Every = cmp.Or(c.Failures.Every, 6*time.Second)
	c.Failures.MaxCallers = cmp.Or(c.Failures.MaxCallers, 10_000)
	return c, c.check()
}

func (o *Options) check() error {
	if err := driver.CheckName(o.Name); err != nil {
		return fmt.Errorf("Options.Name: %w", err)
	}
	const longestName = 400 // leaves room for the part that names the token
	if len(o.Name) > longestName {
		return fmt.Errorf("%w Options.Name: it has %d bytes, the limit is %d", holdfast.ErrInvalid, len(o.Name), longestName)
	}
	for _, d := range []struct {
		name                  string
		value, least, longest time.Duration
	}{
		{"Memory", o.Memory, MinMemory, MaxTTL},
		// Half the grace: a request that is repeated for that time, and then
		// answered, gets the payload.
		{"RequestTimeout", o.RequestTimeout, MinTTL, driver.RedeemGrace / 2},
		{"PruneEvery", o.PruneEvery, time.Second, 24 * time.Hour},
		{"Failures.Every", o.Failures.Every, time.Millisecond, 24 * time.Hour},
	} {
		if d.value < d.least || d.value > d.longest {
			return fmt.Errorf("%w Options.%s %s: want %s to %s", holdfast.ErrInvalid, d.name, d.value, d.least, d.longest)
		}
	}
	for _, n := range []struct {
		name           string
		value, largest int
	}{
		{"MaxPayload", o.MaxPayload, MaxPayload},
		{"PruneBatch", o.PruneBatch, driver.MaxPrune},
		{"Failures.Burst", o.Failures.Burst, 100_000},
		{"Failures.MaxCallers", o.Failures.MaxCallers, 10_000_000},
	} {
		if n.value < 1 || n.value > n.largest {
			return fmt.Errorf("%w Options.%s %d: want 1 to %d", holdfast.ErrInvalid, n.name, n.value, n.largest)
		}
	}
	return nil
}

// resolve returns a copy of o, or an error that wraps ErrInvalid.
func (o *RedeemOptions) resolve() (RedeemOptions, error) {
	if o == nil {
		return RedeemOptions{}, nil
	}
	id := o.RequestID
	if n := len(id); n != 0 && (n < minRequestID || n > maxRequestID) {
		return *o, fmt.Errorf("%w RequestID: it has %d bytes, want %d to %d of which 128 bits are random", holdfast.ErrInvalid, n, minRequestID, maxRequestID)
	}
	if !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return *o, fmt.Errorf("%w RequestID: want UTF-8 without control characters", holdfast.ErrInvalid)
	}
	return *o, nil
}

// checkIssue returns an error that wraps ErrInvalid if the payload or the TTL is
// out of range.
func (o *Options) checkIssue(payload []byte, ttl time.Duration) error {
	switch {
	case len(payload) > o.MaxPayload:
		return fmt.Errorf("%w payload: it has %d bytes, the limit is %d: store it elsewhere and issue a token for its name", holdfast.ErrInvalid, len(payload), o.MaxPayload)
	case ttl < MinTTL || ttl > MaxTTL:
		return fmt.Errorf("%w TTL %s: want %s to %s", holdfast.ErrInvalid, ttl, MinTTL, MaxTTL)
	}
	return nil
}

// ceilMS rounds up to whole milliseconds, the unit of the stores.
func ceilMS(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}
