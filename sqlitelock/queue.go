package sqlitelock

import (
	"errors"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// maxSteps bounds the rows that one transaction purges and the leases that it hands over, because
// renewals need the same write lock.
const maxSteps = 256

// errUnfinished ends a transaction that has made maxSteps before its request was decided. The
// transaction is committed, and another one continues the request.
var errUnfinished = errors.New("the name is not settled yet")

// settle brings a name up to date: it purges expired rows and hands the lock over to the
// next waiter. It returns the view of id, or errUnfinished. INVARIANT I7: no request is
// decided before its name is settled, so that no waiter is overtaken between two
// transactions, and no expired place delays others.
func (t *tx) settle(name string, id lockinfo.LeaseID) (view, error) {
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

// meet is settle for an acquire. It first checks whether the name is free, because most names are.
func (t *tx) meet(name string, id lockinfo.LeaseID) (view, error) {
	v, free, err := t.glimpse(name, id)
	if free || err != nil {
		return v, err
	}
	return t.settle(name, id)
}

// purge deletes expired rows of a name, and places with Once if the name has a record. If
// it reports that there were any, v is out of date.
func (t *tx) purge(name string, v *view) (purged bool, err error) {
	switch {
	case v.stale:
		n, err := t.endLeases(lockinfo.HistoryExpired, purgeLeasesSQL, name, t.bootID, t.now.boot, maxSteps-t.steps)
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
		given, err := scanAll(t.sql, giveUpOnceSQL, []any{name, maxSteps - t.steps}, (*row).columns)
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

// step counts n more steps, and fails if the transaction may make no more.
func (t *tx) step(n int) error {
	t.steps += n
	if t.steps >= maxSteps {
		return errUnfinished
	}
	return nil
}

// serveNext hands the lock over after a release, a downgrade or a record. The name had been
// settled; before is its view at that time. If there is more to hand over than one transaction may,
// later ones continue, and the request itself is complete.
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

// serve grants the lock to waiters in the order of the queue, as long as the live leases allow it.
// INVARIANT I7: a smaller request does not overtake. The caller has purged the name.
func (t *tx) serve(name string, id lockinfo.LeaseID, v *view) error {
	for v.Due() {
		var p head
		if _, err := t.sql.one(headSQL, []any{name}, p.columns()...); err != nil {
			return err
		}
		// The lease ends with the place, so that a dead waiter causes no longer delay.
		token, err := rules.NextToken(uint64(v.last), rules.LeastToken(t.now.micros, p.minToken))
		if err != nil { // there is no such token: the head waits, and its refresh returns the error
			v.Stuck = err
			return nil
		}
		if err := t.grant(name, p.id, v.last, token, p.Fields, p.holder, p.expiry); err != nil {
			return err
		}
		handedOver := lockinfo.HistoryEvent{Kind: lockinfo.HistoryHandedOver, Name: name, Token: token, Waited: t.now.since(p.began)}
		if err := t.note(handedOver, p.Fields, p.holder); err != nil {
			return err
		}
		v.add(p.Mode(), p.holder, p.expiry, t.now)
		if v.last = int64(token); p.id == id {
			v.own, v.Own = v.last, true
		}
		t.tell(p.id, driver.Notice{Token: token})
		if err := t.sql.run(removePlaceSQL, p.seq); err != nil {
			return err
		}
		p = head{}
		if v.Queued, err = t.sql.one(headSQL, []any{name}, p.columns()...); err != nil {
			return err
		}
		v.Head, v.HeadOnce, v.headExpiry = p.Mode(), p.once, p.expiry
		if err := t.step(1); err != nil && v.Due() {
			return err
		}
	}
	return nil
}

// A head is the first place of a queue.
type head struct {
	seq      int64
	minToken uint64
	once     bool
	row
}

func (h *head) columns() []any {
	return append([]any{&h.seq, &h.minToken, &h.once}, h.row.columns()...)
}

// givePlace creates the place of a request, or extends it, and returns its row.
func (t *tx) givePlace(req driver.AcquireRequest) (seq int64, err error) {
	holder := holders.Text(req.Holder)
	if err := t.noteQueued(&req, holder); err != nil {
		return 0, err
	}
	f := modes.Of(req.Mode)
	_, err = t.sql.one(givePlaceSQL, []any{
		req.Name, req.LeaseID, f.Kind, f.Limit, f.Permits, int64(req.MinToken), req.Once,
		holder, t.bootID, t.now.boot, t.now.after(req.WaiterTTL),
	}, &seq)
	if err == nil {
		t.added++
	}
	return seq, err
}
