package mem

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Duties shown here. A one-time token ends once: by a redeem, by a revocation or at its expiry,
// whichever is first. Its state then does not change until it is forgotten. A payload is handed
// out to one redeem and its repeats (INVARIANT I6), and is deleted by the next Prune after that.
// Prune is one bounded step, however many tokens there are. A request with an unknown digest
// creates nothing (I11).

// A deposit is one one-time token.
type deposit struct {
	digest  driver.Digest
	by      lockinfo.LeaseID  // the By of the deposit
	payload []byte            // nil once it was deleted
	expiry  time.Time         // when the token expires unless it is redeemed or revoked before
	forget  time.Time         // when the token becomes Unknown
	state   driver.VaultState // Fresh, Redeemed or Revoked
	taker   lockinfo.LeaseID  // the By of the redeem
	taken   time.Time         // when it was redeemed
	index   int               // its index in Engine.prunable
}

// stateAt returns the state of the token. A nil deposit is Unknown, and so is a forgotten one
// that is not pruned yet. Expired is computed from the time, and not stored. A redeemed token
// does not become Expired.
func (d *deposit) stateAt(now time.Time) driver.VaultState {
	switch {
	case d == nil || !now.Before(d.forget):
		return driver.Unknown
	case d.state == driver.Fresh && !now.Before(d.expiry):
		return driver.Expired
	}
	return d.state
}

// repeatable reports whether a repeat of the redeem still gets the payload. The time counts from
// the first redeem; a repeat does not lengthen it.
func (d *deposit) repeatable(now time.Time) bool { return now.Before(d.taken.Add(driver.RedeemGrace)) }

// due returns when Prune must delete the token, or its payload before that.
func (d *deposit) due() time.Time {
	useless := d.expiry // the payload, if the token is Fresh
	if d.state == driver.Redeemed {
		useless = d.taken.Add(driver.RedeemGrace)
	}
	if d.payload == nil || useless.After(d.forget) {
		return d.forget
	}
	return useless
}

// prunable orders the deposits by when they are due, so that Prune visits only those that are
// due. It is a container/heap.
type prunable []*deposit

func (p prunable) Len() int           { return len(p) }
func (p prunable) Less(i, j int) bool { return p[i].due().Before(p[j].due()) }
func (p prunable) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	p[i].index, p[j].index = i, j
}

// Push and Pop are only for package heap.
func (p *prunable) Push(x any) {
	d := x.(*deposit)
	d.index = len(*p)
	*p = append(*p, d)
}

func (p *prunable) Pop() any {
	last := len(*p) - 1
	d := (*p)[last]
	(*p)[last] = nil // for the garbage collector
	*p = (*p)[:last]
	return d
}

// Deposit implements driver.Vault. By identifies a repeat. A repeat changes nothing, whatever the
// state of the token is.
func (e *Engine) Deposit(ctx context.Context, req driver.DepositRequest) error {
	return e.step(ctx, func(now time.Time) error {
		d := e.deposits[req.Digest]
		switch {
		case d.stateAt(now) == driver.Unknown:
		case d.by == req.By:
			return nil // INVARIANT I6: a repeat
		default:
			return fmt.Errorf("%w: there is another one-time token with this secret: draw a new one", driver.ErrKindMismatch)
		}
		if d != nil {
			heap.Remove(&e.prunable, d.index) // forgotten, but not pruned yet
		}
		expiry := now.Add(req.TTL)
		d = &deposit{
			digest: req.Digest, by: req.By, payload: slices.Clone(req.Payload), state: driver.Fresh,
			expiry: expiry, forget: expiry.Add(req.Memory),
		}
		e.deposits[req.Digest] = d
		heap.Push(&e.prunable, d)
		return nil
	})
}

// Redeem implements driver.Vault. The request that finds the token Fresh makes it Redeemed in
// the same step, so that only one request and its repeats get the payload.
func (e *Engine) Redeem(ctx context.Context, req driver.RedeemRequest) (driver.VaultReply, error) {
	return answer(ctx, e, func(now time.Time) (driver.VaultReply, error) {
		d := e.deposits[req.Proof.Digest()]
		state := d.stateAt(now)
		switch {
		case state == driver.Fresh:
			d.state, d.taker, d.taken = driver.Redeemed, req.By, now
			heap.Fix(&e.prunable, d.index)
		case state == driver.Redeemed && d.taker == req.By && d.repeatable(now): // INVARIANT I6
		default:
			return driver.VaultReply{State: state}, nil
		}
		return driver.VaultReply{State: driver.Redeemed, Granted: true, Payload: slices.Clone(d.payload)}, nil
	})
}

// Peek implements driver.Vault.
func (e *Engine) Peek(ctx context.Context, proof driver.Proof) (driver.VaultReply, error) {
	return answer(ctx, e, func(now time.Time) (driver.VaultReply, error) {
		d := e.deposits[proof.Digest()]
		reply := driver.VaultReply{State: d.stateAt(now)}
		if reply.State == driver.Fresh {
			reply.Payload, reply.ExpiresIn = slices.Clone(d.payload), d.expiry.Sub(now)
		}
		return reply, nil
	})
}

// Revoke implements driver.Vault. It returns the state before, so that the caller knows whether
// the revocation came in time.
func (e *Engine) Revoke(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	return answer(ctx, e, func(now time.Time) (driver.VaultReply, error) {
		d := e.deposits[digest]
		reply := driver.VaultReply{State: d.stateAt(now)}
		if reply.State == driver.Fresh {
			d.state, d.payload = driver.Revoked, nil
			heap.Fix(&e.prunable, d.index)
		}
		return reply, nil
	})
}

// Prune implements driver.Vault. The deposit that is due first is at the top of the heap, so the
// step ends at a deposit that is not due, or at the limit. A deposit whose payload was deleted is
// due again at its forget.
func (e *Engine) Prune(ctx context.Context, limit int) (deleted int, more bool, err error) {
	err = e.step(ctx, func(now time.Time) error {
		for emptied := 0; len(e.prunable) > 0 && !more; {
			d := e.prunable[0]
			isOver := d.stateAt(now) == driver.Unknown
			switch {
			case now.Before(d.due()):
				return nil
			case isOver && deleted == limit, !isOver && emptied == limit:
				more = true
			case isOver:
				heap.Pop(&e.prunable)
				delete(e.deposits, d.digest)
				deleted++
			default:
				d.payload = nil
				heap.Fix(&e.prunable, d.index)
				emptied++
			}
		}
		return nil
	})
	return deleted, more, err
}

// SelfPruning implements driver.Vault. The engine has no goroutine that could prune.
func (e *Engine) SelfPruning() bool { return false }
