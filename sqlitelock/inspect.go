package sqlitelock

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A row is a row of the table lease or place.
type row struct {
	modes.Fields
	name     string
	id       lockinfo.LeaseID
	token    uint64 // of a lease
	holder   string // JSON
	began    int64  // the grant, or the first request
	expiry   int64
	released bool // of a lease: it has ended, and keeps the lock closed until the expiry
	boot     string
}

func (r *row) columns() []any {
	return []any{&r.name, &r.id, &r.Kind, &r.Limit, &r.Permits, &r.token, &r.holder, &r.began, &r.expiry, &r.released, &r.boot}
}

// lasted returns how long the lease or the place has lasted.
func (r *row) lasted(now instant) time.Duration {
	return time.Duration(max(min(now.boot, r.expiry)-r.began, 0))
}

// addTo adds a lease to the state of its lock, unless it has expired.
func (r *row) addTo(lock *lockinfo.LockState, now instant) {
	if r.expiry <= now.boot {
		return
	}
	lock.Mode = lock.Mode.Plus(r.Mode())
	lock.LastToken = max(lock.LastToken, r.token)
	lock.Holders = append(lock.Holders, r.holding(now))
}

// holding returns the lease for people.
func (r *row) holding(now instant) lockinfo.Holding {
	return lockinfo.Holding{
		LeaseID: r.id, Token: r.token, Mode: r.Mode(), Holder: holders.Read(r.holder),
		Since: now.since(r.began), ExpiresIn: now.until(r.expiry), Released: r.released,
	}
}

// place returns the place for people.
func (r *row) place(now instant) lockinfo.Place {
	return lockinfo.Place{
		LeaseID: r.id, Mode: r.Mode(), Holder: holders.Read(r.holder),
		Since: now.since(r.began), ExpiresIn: now.until(r.expiry),
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
	var leases, places []row
	err := r.atOnce(func() (err error) {
		_, err = r.sql.one(totalsSQL, []any{name, r.bootID, r.now.boot}, &lock.QueueLength, &lock.LastToken)
		if err == nil {
			leases, err = scanAll(r.sql, leasesSQL, []any{name, r.bootID}, (*row).columns)
		}
		if err == nil {
			places, err = scanAll(r.sql, placesSQL, []any{name, r.bootID, r.now.boot, driver.ShownPlaces}, (*row).columns)
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
		lock.Queue = append(lock.Queue, p.place(r.now))
	}
	return lock, nil
}
