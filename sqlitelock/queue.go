package sqlitelock

import (
	"errors"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
)

// maxSteps bounds what one transaction does for the queues of its names: the
// rows that it purges and the leases that it grants. Those who renew their
// leases need the same write lock.
const maxSteps = 256

// errUnfinished ends a transaction that has made maxSteps before its request
// was decided. It is committed, and another one goes on with the request.
var errUnfinished = errors.New("the name is not settled yet")

// settle brings a name up to date: what has ended is purged, and the lock is
// handed over to whoever is next. It returns the view of id, or errUnfinished.
// INVARIANT I7: no request is decided before its name is settled, so that nobody
// is overtaken between two transactions, and no place that is over keeps anybody
// waiting.
func (t *tx) settle(name string, id driver.LeaseID) (view, error) {
	for {
		v, err := t.look(name, id)
		if err != nil {
			return v, err
		}
		purged, err := t.purge(name, &v)
		if err != nil {
			return v, err
		}
		if !purged {
			return v, t.serve(name, id, &v)
		}
	}
}

// meet is settle for a request that wants the name: it asks first whether that is
// free, as most names are.
func (t *tx) meet(name string, id driver.LeaseID) (view, error) {
	v, free, err := t.glimpse(name, id)
	if free || err != nil {
		return v, err
	}
	return t.settle(name, id)
}

// purge deletes the rows of a name that are over, and gives up the places of
// those who asked for what is done. If it reports that there were any, v is out
// of date.
func (t *tx) purge(name string, v *view) (purged bool, err error) {
	switch {
	case v.stale:
		n, err := t.endLeases(driver.EventExpired, purgeLeasesSQL, name, t.bootID, t.now.boot, maxSteps-t.steps)
		if err == nil {
			err = t.step(n)
		}
		if err != nil {
			return false, err
		}
		if n, err = t.endPlaces(purgePlacesSQL, name, t.bootID, t.now.boot, maxSteps-t.steps); err != nil {
			return false, err
		}
		return true, t.step(n)
	case v.Recorded && v.Queued:
		given, err := all(t.sql, giveUpOnceSQL, []any{name, maxSteps - t.steps}, (*ending).columns)
		for i := 0; i < len(given) && err == nil; i++ {
			t.tell(given[i].id, driver.Notice{})
			err = t.noteLeft(&given[i])
		}
		if err != nil {
			return false, err
		}
		return len(given) > 0, t.step(len(given))
	}
	return false, nil
}

// step counts n more steps, and fails if the transaction may make no others.
func (t *tx) step(n int) error {
	t.steps += n
	if t.steps >= maxSteps {
		return errUnfinished
	}
	return nil
}

// serveNext hands over what a release, a downgrade or a record made room for.
// The name was settled before, and before says whether anybody waited then.
// If that is more than one transaction may do, the rest is left to those that
// follow; the request itself is carried out.
func (t *tx) serveNext(name string, before view) error {
	if !before.Queued {
		return nil
	}
	_, err := t.settle(name, "")
	if errors.Is(err, errUnfinished) {
		t.rest = name
		return nil
	}
	return err
}

// serve grants the lock to the first of the queue, and to those behind it, as
// long as the live leases allow it. INVARIANT I7: nobody is overtaken, however
// small their request. No place of the name is over.
func (t *tx) serve(name string, id driver.LeaseID, v *view) error {
	for v.Due() {
		var p place
		if _, err := t.sql.one(headSQL, []any{name}, p.columns()...); err != nil {
			return err
		}
		// The lease ends with the place, so that a waiter that died costs no
		// more.
		token, err := rules.NextToken(uint64(v.last), rules.LeastToken(t.now.micros, p.minToken))
		if err != nil { // there is no such token: the head waits, and is told why
			v.Stuck = err
			return nil
		}
		if err := t.grant(name, p.id, v.last, token, p.Need, p.holder, p.expiry); err != nil {
			return err
		}
		handedOver := driver.Event{Kind: driver.EventHandedOver, Name: name, Token: token, Waited: t.now.since(p.asked)}
		if err := t.note(handedOver, p.Need, p.holder); err != nil {
			return err
		}
		v.add(p.Need, p.holder, p.expiry, t.now)
		if v.last = int64(token); p.id == id {
			v.own, v.Own = v.last, true
		}
		t.tell(p.id, driver.Notice{Token: token})
		if err := t.sql.run(removePlaceSQL, p.seq); err != nil {
			return err
		}
		p = place{}
		if v.Queued, err = t.sql.one(headSQL, []any{name}, p.columns()...); err != nil {
			return err
		}
		v.Head, v.HeadOnce, v.headExpiry = p.Need, p.once, p.expiry
		if err := t.step(1); err != nil && v.Due() {
			return err
		}
	}
	return nil
}

// A place is one row of the table of that name.
type place struct {
	rules.Need
	seq      int64
	id       driver.LeaseID
	minToken uint64
	once     bool
	holder   string
	asked    int64
	expiry   int64
}

func (p *place) columns() []any {
	return []any{&p.seq, &p.id, &p.Mode, &p.Limit, &p.Permits, &p.minToken, &p.once, &p.holder, &p.asked, &p.expiry}
}

// givePlace gives a request a place, or lengthens the one that it has, and
// returns its row.
func (t *tx) givePlace(req driver.AcquireRequest) (seq int64, err error) {
	holder, err := marshal(req.Holder)
	if err != nil {
		return 0, err
	}
	if err := t.noteQueued(&req, holder); err != nil {
		return 0, err
	}
	_, err = t.sql.one(givePlaceSQL, []any{
		req.Name, req.LeaseID, req.Mode, req.Limit, req.Permits, int64(req.MinToken), req.Once,
		holder, t.bootID, t.now.boot, t.now.after(req.WaiterTTL),
	}, &seq)
	if err == nil {
		t.added++
	}
	return seq, err
}
