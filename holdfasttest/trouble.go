package holdfasttest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// A trouble is what is wrong with the store, or with the connection to it.
type trouble struct {
	slow   time.Duration // each request takes this much longer
	broken error         // the error of each request; nil if the store answers
	drop   int           // how many replies are lost from now on
}

// errNoReply leaves open whether the request was carried out, like a connection
// that is reset.
var errNoReply = errors.New("holdfasttest: the answer was lost")

// BreakStore makes every request fail with err from now on, without being carried
// out: even those that SlowStore delays, and background requests. Nil mends the
// store. An error that is not definite, see driver.Definite, is wrapped in
// ErrUnavailable.
func (k *Kit) BreakStore(err error) {
	if err != nil && !driver.Definite(err) {
		err = fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
	}
	k.set(func(t *trouble) { t.broken = err })
}

// SlowStore delays each request by d before it reaches the store; a request that its sender gives
// up meanwhile does not reach it. 0 ends the delay. A d beyond Options.RequestTimeout simulates a
// store that does not answer.
func (k *Kit) SlowStore(d time.Duration) { k.set(func(t *trouble) { t.slow = d }) }

// DropReplies makes the store carry out the next n requests that reach it, and loses the replies:
// the client sees a broken connection. Background requests, such as renewals, count too. 0 ends
// this.
func (k *Kit) DropReplies(n int) { k.set(func(t *trouble) { t.drop = n }) }

func (k *Kit) set(change func(*trouble)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.trouble)
}

// suffer carries out a request with the present trouble.
func (k *Kit) suffer(ctx context.Context, send func() error) error {
	k.mu.Lock()
	slow := k.trouble.slow
	k.mu.Unlock()
	if slow > 0 && !ask.Sleep(ctx, slow) {
		return ctx.Err()
	}
	k.mu.Lock()
	broken, drop := k.trouble.broken, k.trouble.drop > 0
	if broken == nil && drop {
		k.trouble.drop--
	}
	k.mu.Unlock()
	if broken != nil {
		return broken
	}
	err := send()
	if drop {
		return errNoReply
	}
	return err
}
