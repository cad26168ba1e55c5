package sqlitelock

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
)

// A lease is one row of the table of that name.
type lease struct {
	rules.Need
	id       driver.LeaseID
	token    uint64
	holder   string
	granted  int64
	expiry   int64
	released bool
}

func (l *lease) columns() []any {
	return []any{&l.id, &l.token, &l.Mode, &l.Limit, &l.Permits, &l.holder, &l.granted, &l.expiry, &l.released}
}

// addTo adds the lease to what is shown of its name, unless it is over.
func (l *lease) addTo(lock *driver.Lock, now instant) {
	if l.expiry <= now.boot {
		return
	}
	lock.Mode, lock.Limit = l.Mode, l.Limit
	lock.LastToken = max(lock.LastToken, l.token)
	lock.Holders = append(lock.Holders, l.describe(now))
}

// describe says what people are shown of the lease.
func (l *lease) describe(now instant) driver.Holding {
	return driver.Holding{
		LeaseID: l.id, Token: l.token, Permits: l.Permits, Holder: describe(l.holder),
		Since: now.since(l.granted), ExpiresIn: now.until(l.expiry), Released: l.released,
	}
}

// Inspect implements driver.Engine. It does not wait for writers, and hands
// nothing over. Of a long queue it describes the first driver.ShownPlaces.
func (e *Engine) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	return answer(ctx, e.query, func(r reader) (driver.Lock, error) { return r.inspect(name) })
}

// inspect reads a name in one transaction, so that it finds whoever is handed
// the lock meanwhile in the queue or among the holders, and not in both.
func (r *reader) inspect(name string) (driver.Lock, error) {
	lock := driver.Lock{Name: name}
	if err := r.sql.run(beginReadSQL); err != nil {
		return lock, err
	}
	defer func() { _ = r.sql.run(endReadSQL) }()
	leases, err := all(r.sql, leasesSQL, []any{name, r.bootID}, (*lease).columns)
	if err != nil {
		return lock, err
	}
	places, err := all(r.sql, placesSQL, []any{name, r.bootID, r.now.boot, driver.ShownPlaces}, (*place).columns)
	if err != nil {
		return lock, err
	}
	if _, err := r.sql.one(queueLengthSQL, []any{name, r.bootID, r.now.boot}, &lock.QueueLength); err != nil {
		return lock, err
	}
	if _, err := r.sql.one(lastTokenSQL, []any{name}, &lock.LastToken); err != nil {
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

// describe says what is shown of a place.
func (p *place) describe(now instant) driver.Waiting {
	return driver.Waiting{
		LeaseID: p.id, Mode: p.Mode, Permits: p.Permits, Holder: describe(p.holder),
		Since: now.since(p.asked), ExpiresIn: now.until(p.expiry),
	}
}
