package lease

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// Terms of a lease other than its TTL are labels of its holder. Any server can read them when
// the lease is renewed or released. The last bit of the lease ID is set if there are such
// labels, so that servers need not read other leases.
const (
	minHoldLabel   = "holdfast/min_hold_ms"
	LockDelayLabel = "holdfast/lock_delay_ms"

	// namesLabel is a digest of the names that were requested together. Servers compare it.
	namesLabel = "holdfast/names"
)

// labels returns the labels for a request: the client's, and ours.
func labels(want *wire.LeaseRequest) map[string]string {
	if !hasLabels(want) && want.Names == nil {
		return want.Labels
	}
	all := map[string]string{}
	maps.Copy(all, want.Labels)
	for name, value := range map[string]int64{minHoldLabel: want.MinHoldMS, LockDelayLabel: want.LockDelayMS} {
		if delete(all, name); value > 0 {
			all[name] = strconv.FormatInt(value, 10)
		}
	}
	if want.Names != nil {
		sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(want.Names)), "\x00")))
		all[namesLabel] = hex.EncodeToString(sum[:8])
	}
	return all
}

func hasLabels(want *wire.LeaseRequest) bool { return want.MinHoldMS > 0 || want.LockDelayMS > 0 }

// sameTerms compares our labels.
func sameTerms(a, b lockinfo.Holder) bool {
	same := func(label string) bool { return a.Labels[label] == b.Labels[label] }
	return same(minHoldLabel) && same(LockDelayLabel) && same(namesLabel)
}

// Term returns the duration in a label, which any client of the store may have set: 0 if it is
// not a duration, and holdfast.MaxTTL at most.
func Term(h lockinfo.Holder, label string) time.Duration {
	n, _ := strconv.ParseInt(h.Labels[label], 10, 64)
	return max(0, min(MS(n), holdfast.MaxTTL))
}

// Labelled returns id with its last bit set or cleared.
func Labelled(id lockinfo.LeaseID, set bool) lockinfo.LeaseID {
	last, _ := strconv.ParseUint(string(id[len(id)-1:]), 16, 8) // one of our own lease IDs
	if last &^= 1; set {
		last |= 1
	}
	return id[:len(id)-1] + lockinfo.LeaseID(strconv.FormatUint(last, 16))
}

// A Holding is a lease in the store.
type Holding struct {
	lockinfo.Holding
	sent time.Time // before the request was sent
}

// Ends returns when the lease ends at the earliest, with its lock delay.
func (h Holding) Ends() time.Time { return h.sent.Add(h.ExpiresIn) }

// Holding reads a live lease. The error is driver.ErrLost if there is none.
func (d *Store) Holding(ctx context.Context, name string, id lockinfo.LeaseID) (Holding, error) {
	lock, sent, err := d.Inspect(ctx, name)
	if err != nil {
		return Holding{}, err
	}
	for _, h := range lock.Live() {
		if id.Is(h.LeaseID) {
			return Holding{h, sent}, nil
		}
	}
	return Holding{}, driver.ErrLost
}

// Inspect reads a lock, and retries until the store answers. sent is a time before the answered
// request was sent.
func (d *Store) Inspect(ctx context.Context, name string) (lock lockinfo.LockState, sent time.Time, err error) {
	f := ask.Until(ctx, RequestTimeout, func(ctx context.Context) (err error) {
		sent = time.Now()
		lock, err = d.House.Engine.Inspect(ctx, name)
		return err
	})
	return lock, sent, f.Harmless()
}

// Left returns the least time that is left of a lease, without its lock delay.
func (h Holding) Left() time.Duration {
	if h.ExpiresIn == lockinfo.Never {
		return h.ExpiresIn
	}
	return h.ExpiresIn - time.Since(h.sent) - Term(h.Holder, LockDelayLabel)
}

// keepFor returns how long a name must stay closed after the release of a lease.
func (d *Store) keepFor(ctx context.Context, name string, id lockinfo.LeaseID) (time.Duration, error) {
	if Labelled(id, false) == id {
		return 0, nil
	}
	h, err := d.Holding(ctx, name, id)
	switch {
	case driver.Class(err) == driver.ErrLost:
		return 0, nil
	case err != nil:
		return 0, err
	}
	if hold := Term(h.Holder, minHoldLabel); hold > 0 {
		return max(0, hold-h.Since), nil
	}
	return 0, nil
}
