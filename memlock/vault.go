package memlock

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A deposit is one one-time token.
type deposit struct {
	digest  driver.Digest
	by      driver.LeaseID // of the deposit
	payload []byte         // nil once nobody can be handed it any more
	expiry  time.Time      // of the token
	forget  time.Time
	state   driver.VaultState // Fresh, Redeemed or Revoked
	taker   driver.LeaseID    // who redeemed it
	taken   time.Time
	index   int // in Engine.prunable
}

// stateAt returns what has become of the token. A nil deposit is Unknown.
func (d *deposit) stateAt(now time.Time) driver.VaultState {
	switch {
	case d == nil || !now.Before(d.forget):
		return driver.Unknown
	case d.state == driver.Fresh && !now.Before(d.expiry):
		return driver.Expired
	}
	return d.state
}

// repeatable reports whether the redeem of a redeemed token may be answered
// again.
func (d *deposit) repeatable(now time.Time) bool { return now.Before(d.taken.Add(driver.RedeemGrace)) }

// due returns when Prune next has something to do with the token: to delete
// it, or its payload before that.
func (d *deposit) due() time.Time {
	useless := d.forget
	switch {
	case d.payload == nil:
	case d.state == driver.Fresh:
		useless = d.expiry
	case d.state == driver.Redeemed:
		useless = d.taken.Add(driver.RedeemGrace)
	}
	if useless.Before(d.forget) {
		return useless
	}
	return d.forget
}

// prunable orders the deposits by when they are due, so that a step of Prune
// does not look at those that it leaves alone. It is a container/heap.
type prunable []*deposit

func (p prunable) Len() int           { return len(p) }
func (p prunable) Less(i, j int) bool { return p[i].due().Before(p[j].due()) }
func (p prunable) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	p[i].index, p[j].index = i, j
}

// Push and Pop are for package heap alone.
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

// Deposit implements driver.Vault.
func (e *Engine) Deposit(ctx context.Context, req driver.DepositRequest) error {
	now, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer e.mu.Unlock()
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
}

// Redeem implements driver.Vault.
func (e *Engine) Redeem(ctx context.Context, req driver.RedeemRequest) (driver.VaultReply, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return driver.VaultReply{}, err
	}
	defer e.mu.Unlock()
	d := e.deposits[req.Digest]
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
}

// Peek implements driver.Vault.
func (e *Engine) Peek(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return driver.VaultReply{}, err
	}
	defer e.mu.Unlock()
	d := e.deposits[digest]
	reply := driver.VaultReply{State: d.stateAt(now)}
	if reply.State == driver.Fresh {
		reply.Payload, reply.ExpiresIn = slices.Clone(d.payload), d.expiry.Sub(now)
	}
	return reply, nil
}

// Revoke implements driver.Vault.
func (e *Engine) Revoke(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return driver.VaultReply{}, err
	}
	defer e.mu.Unlock()
	d := e.deposits[digest]
	reply := driver.VaultReply{State: d.stateAt(now)}
	if reply.State == driver.Fresh {
		d.state, d.payload = driver.Revoked, nil
		heap.Fix(&e.prunable, d.index)
	}
	return reply, nil
}

// Prune implements driver.Vault.
func (e *Engine) Prune(ctx context.Context, limit int) (deleted int, more bool, err error) {
	now, err := e.enter(ctx)
	if err != nil {
		return 0, false, err
	}
	defer e.mu.Unlock()
	for emptied := 0; len(e.prunable) > 0; {
		d := e.prunable[0]
		isOver := d.stateAt(now) == driver.Unknown
		switch {
		case now.Before(d.due()):
			return deleted, false, nil
		case isOver && deleted == limit, !isOver && emptied == limit:
			return deleted, true, nil
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
	return deleted, false, nil
}

// SelfPruning implements driver.Vault.
func (e *Engine) SelfPruning() bool { return false }
