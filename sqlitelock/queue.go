package sqlitelock

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
)

// settle brings a name up to date, whoever noticed first: what has ended is
// purged, and the lock is handed over to whoever is next. It returns the view
// of id.
func (t *tx) settle(name string, id driver.LeaseID) (view, error) {
	v, err := look(t.sql.look, name, id, t.bootID, t.now)
	if err != nil {
		return v, err
	}
	if v.stale {
		if err := run(t.sql.purgeLeases, name, t.bootID, t.now.boot); err != nil {
			return v, err
		}
		if err := run(t.sql.purgePlaces, name, t.bootID, t.now.boot); err != nil {
			return v, err
		}
	}
	return v, t.serve(name, id, &v)
}

// serveNext hands over what a release, a downgrade or a record made room for.
// The name was settled before, and before says whether anybody waited then.
func (t *tx) serveNext(name string, before view) error {
	if !before.queued() {
		return nil
	}
	v, err := look(t.sql.look, name, "", t.bootID, t.now)
	if err != nil {
		return err
	}
	return t.serve(name, "", &v)
}

// serve grants the lock to the first of the queue, and to those behind it, as
// long as the live leases allow it. INVARIANT I7: nobody is overtaken, however
// small their request. No place of the name is over.
func (t *tx) serve(name string, id driver.LeaseID, v *view) error {
	for !v.settled() {
		var p place
		if _, err := one(t.sql.head, []any{name}, p.columns()...); err != nil {
			return err
		}
		if p.once && v.recorded {
			t.tell(p.id, driver.News{})
		} else {
			// MinToken was checked when the place was given. The lease ends
			// with the place, so that a waiter that died costs no more.
			token, ok, err := t.grant(name, p.id, p.need, p.holder, p.expiry, max(t.now.micros, p.minToken+1))
			if err != nil {
				return err
			}
			if !ok {
				v.stuck = errUsedUp
				return nil
			}
			v.add(p.need, p.holder, p.expiry)
			if p.id == id {
				v.own = int64(token)
			}
			t.tell(p.id, driver.News{Token: token})
		}
		if err := run(t.sql.dropPlace, p.seq); err != nil {
			return err
		}
		p = place{need: need{mode: nobody}}
		if _, err := one(t.sql.head, []any{name}, p.columns()...); err != nil {
			return err
		}
		v.head, v.headOnce, v.headExpiry = p.need, p.once, p.expiry
	}
	return nil
}

// A place is one row of the table of that name.
type place struct {
	need
	seq      int64
	id       driver.LeaseID
	minToken uint64
	once     bool
	holder   string
	expiry   int64
}

func (p *place) columns() []any {
	return []any{&p.seq, &p.id, &p.mode, &p.limit, &p.permits, &p.minToken, &p.once, &p.holder, &p.expiry}
}

// enqueue gives a request a place, or lengthens the one that it has, and
// returns which.
func (t *tx) enqueue(req driver.AcquireRequest) (place int, err error) {
	holder, err := marshal(req.Holder)
	if err != nil {
		return 0, err
	}
	var seq int64
	_, err = one(t.sql.queue, []any{
		req.Name, req.LeaseID, req.Mode, req.Limit, req.Permits, int64(req.MinToken), req.Once,
		holder, t.bootID, t.now.boot, t.now.after(req.WaiterTTL),
	}, &seq)
	if err != nil {
		return 0, err
	}
	t.added++
	return t.rank(req.Name, seq)
}

func (t *tx) rank(name string, seq int64) (place int, err error) {
	_, err = one(t.sql.rank, []any{name, seq}, &place)
	return place, err
}

// Refresh implements driver.Queuer. The batch is one transaction.
func (e *Engine) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	replies := make([]driver.RefreshReply, len(reqs))
	err := e.transact(ctx, func(t *tx) (err error) {
		for i, req := range reqs {
			if replies[i], err = t.renew(req); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		for i := range replies {
			replies[i] = driver.RefreshReply{Err: err}
		}
	}
	return replies
}

// renew answers one of the batch. What concerns only this one is in the
// reply's Err.
func (t *tx) renew(req driver.RefreshRequest) (reply driver.RefreshReply, err error) {
	v, err := t.settle(req.Name, req.LeaseID)
	if err != nil {
		return reply, err
	}
	expiry := t.now.after(req.WaiterTTL)
	if v.own != 0 {
		reply.Outcome, reply.Token = driver.Granted, uint64(v.own)
		return reply, run(t.sql.lengthen, req.Name, t.bootID, req.LeaseID, t.now.boot, expiry)
	}
	var seq int64
	found, err := one(t.sql.refresh, []any{req.Name, req.LeaseID, expiry}, &seq)
	switch {
	case err != nil:
		return reply, err
	case !found:
		reply.Err = driver.ErrLost
		return reply, nil
	case v.stuck != nil:
		reply.Err = v.stuck
		return reply, nil
	}
	place, err := t.rank(req.Name, seq)
	reply.InTheWay = v.inTheWay(place, t.now)
	return reply, err
}
