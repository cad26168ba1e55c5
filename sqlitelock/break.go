package sqlitelock

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-locks/holdfast/driver"
)

// breakRows bounds how many leases one transaction breaks: those who renew
// others need the same write lock.
const breakRows = 128

// Break implements driver.Breaker. The next in the queue has the lock with the commit,
// and the holders' processes are told through the alarm.
func (e *Engine) Break(ctx context.Context, req driver.BreakRequest) ([]driver.Broken, error) {
	answer := map[uint64]driver.Broken{}
	for {
		var ended []lease
		var known []driver.Broken
		err := e.transact(ctx, func(t *tx) (err error) {
			ended, known, err = t.breakLeases(req)
			return err
		})
		if err != nil && len(answer) > 0 {
			return nil, fmt.Errorf("broken in part: %s", err.Error()) // unknown: a repeat goes on
		}
		if err != nil {
			return nil, err
		}
		for _, b := range known {
			if b.ID == req.ID { // INVARIANT I6: ended now, or by an earlier copy
				answer[b.Token] = b
			}
		}
		var ids []driver.LeaseID
		for _, l := range ended {
			ids = append(ids, l.id)
			if _, ok := answer[l.token]; !ok { // more than are remembered
				answer[l.token] = l.brokenBy(req)
			}
		}
		if len(ids) > 0 {
			e.alarm.ring(ids)
		}
		if len(ended) < breakRows {
			return driver.ByToken(answer), nil
		}
	}
}

// breakLeases ends the leases that req is about, as many as one transaction
// may, and returns them and what is remembered of the name then. INVARIANT I4:
// none but those with their tokens.
func (t *tx) breakLeases(req driver.BreakRequest) (ended []lease, known []driver.Broken, err error) {
	v, err := t.settle(req.Name, "")
	if err != nil {
		return nil, nil, err
	}
	ended, err = all(t.sql.breakLeases, []any{req.Name, t.bootID, t.now.boot, int64(req.Token), req.Older, breakRows},
		func(l *lease) []any { return []any{&l.id, &l.token, &l.Permits, &l.holder} })
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(ended, func(a, b lease) int { return cmp.Compare(a.token, b.token) })
	for _, l := range ended {
		err := run(t.sql.putBroken, req.Name, req.ID, l.id, int64(l.token), l.Permits, l.holder,
			req.Author, req.Reason, t.bootID, t.now.boot, int64(t.now.micros))
		if err != nil {
			return nil, nil, err
		}
		t.added++
	}
	if err := run(t.sql.trimBroken, req.Name, driver.MaxBreaks); err != nil { // INVARIANT I11
		return nil, nil, err
	}
	if known, err = broken(t.sql.broken, req.Name, t.bootID, t.now); err != nil || len(ended) == 0 {
		return nil, known, err
	}
	return ended, known, t.serveNext(req.Name, v)
}

// brokenBy returns the record of a lease that was broken just now.
func (l lease) brokenBy(req driver.BreakRequest) driver.Broken {
	return driver.Broken{
		ID: req.ID, LeaseID: l.id, Token: l.token, Permits: l.Permits, Holder: describe(l.holder),
		Author: req.Author, Reason: req.Reason,
	}
}

// Breaks implements driver.Breaker. It does not wait for writers.
func (e *Engine) Breaks(ctx context.Context, name string) (known []driver.Broken, err error) {
	err = e.query(ctx, func() error {
		now, err := e.clock.now()
		if err != nil {
			return err
		}
		known, err = broken(e.read.broken, name, e.clock.bootID, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	return known, nil
}
