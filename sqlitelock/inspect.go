package sqlitelock

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A lease is one row of the table of that name.
type lease struct {
	modes.Fields
	id       lockinfo.LeaseID
	token    uint64
	holder   string
	granted  int64
	expiry   int64
	released bool
}

func (l *lease) columns() []any {
	return []any{&l.id, &l.token, &l.Kind, &l.Limit, &l.Permits, &l.holder, &l.granted, &l.expiry, &l.released}
}

// addTo adds the lease to the state of its lock, unless it has expired.
func (l *lease) addTo(lock *lockinfo.LockState, now instant) {
	if l.expiry <= now.boot {
		return
	}
	lock.Mode = lock.Mode.Plus(l.Mode())
	lock.LastToken = max(lock.LastToken, l.token)
	lock.Holders = append(lock.Holders, l.describe(now))
}

// describe returns the lease for people.
func (l *lease) describe(now instant) lockinfo.Holding {
	return lockinfo.Holding{
		LeaseID: l.id, Token: l.token, Mode: l.Mode(), Holder: holders.Read(l.holder),
		Since: now.since(l.granted), ExpiresIn: now.until(l.expiry), Released: l.released,
	}
}

// Inspect implements driver.Engine. It does not wait for writers, and does not hand a lock over. It
// describes the first driver.ShownPlaces of a queue.
func (e *engine) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	return answer(ctx, e.query, func(r reader) (lockinfo.LockState, error) { return r.inspect(name) })
}

// inspect reads a name in one transaction: a waiter that gets the lock meanwhile is in the
// queue or among the holders, not in both.
func (r *reader) inspect(name string) (lockinfo.LockState, error) {
	lock := lockinfo.LockState{Name: name}
	var leases []lease
	var places []place
	err := r.atOnce(func() (err error) {
		_, err = r.sql.one(totalsSQL, []any{name, r.bootID, r.now.boot}, &lock.QueueLength, &lock.LastToken)
		if err == nil {
			leases, err = scanAll(r.sql, leasesSQL, []any{name, r.bootID}, (*lease).columns)
		}
		if err == nil {
			places, err = scanAll(r.sql, placesSQL, []any{name, r.bootID, r.now.boot, driver.ShownPlaces}, (*place).columns)
		}
		return err
	})
	if err != nil {
		return lock, err
	}
	for _, l := range leases {
		l.addTo(&lock, r.now)
	}
	for _, p := range places {
		lock.Queue = append(lock.Queue, p.describe(r.now))
	}
	return lock, nil
}

// describe returns the place for people.
func (p *place) describe(now instant) lockinfo.Place {
	return lockinfo.Place{
		LeaseID: p.id, Mode: p.Mode(), Holder: holders.Read(p.holder),
		Since: now.since(p.asked), ExpiresIn: now.until(p.expiry),
	}
}
