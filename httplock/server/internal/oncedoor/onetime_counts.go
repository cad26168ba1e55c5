package oncedoor

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/onetime"
	"github.com/holdfast-locks/holdfast/wire"
)

// A tokenCounts counts what this server has done with one-time tokens since it began. The store
// cannot count that: it has only digests. INVARIANT I11: there is one collection.
type tokenCounts struct {
	began time.Time

	mu  sync.Mutex
	all wire.TokenCollection
}

// add counts an event, which has neither a secret nor a payload.
func (c *tokenCounts) add(e observe.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.Kind {
	case observe.TokenIssued:
		c.all.Issued++
	case observe.TokenRedeemed:
		c.all.Redeemed++
	case observe.TokenRevoked:
		c.all.Revoked++
	case observe.TokenRefused:
		c.refused(e.Err)
	case observe.TokensPruned, observe.PruneFailed:
		c.all.Pruned += e.Count
	}
}

// refused counts a redeem without a payload by its cause.
func (c *tokenCounts) refused(err error) {
	switch {
	case errors.Is(err, onetime.ErrExpired):
		c.all.Expired++
	case errors.Is(err, onetime.ErrMalformed), errors.Is(err, onetime.ErrUnknown), errors.Is(err, onetime.ErrRevoked), errors.Is(err, onetime.ErrRedeemed):
		c.all.Refused++
	default:
		c.all.Failed++
	}
}

// counts answers GET /v1/onetime.
func (d *desk) counts(w http.ResponseWriter, r *door.Request) error {
	if err := r.Need(caller.Read, ""); err != nil {
		return err
	}
	if d.noTokens != nil {
		return d.noTokens
	}
	d.counted.mu.Lock()
	all := d.counted.all
	d.counted.mu.Unlock()
	all.Name = collection
	return door.Write(w, http.StatusOK, wire.TokenCounts{
		SinceMS: time.Since(d.counted.began).Milliseconds(), Collections: []wire.TokenCollection{all},
	})
}
