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

// Break implements driver.Breaker. The next in the queue has the lock with the
// commit, and the holders' processes hear the alarm.
func (e *Engine) Break(ctx context.Context, req driver.BreakRequest) ([]driver.Broken, error) {
	answer := map[uint64]driver.Broken{}
	for {
		var ended []ending
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
// only those with its token or, if it says so, smaller ones.
func (t *tx) breakLeases(req driver.BreakRequest) (ended []ending, known []driver.Broken, err error) {
	v, err := t.settle(req.Name, "")
	if err != nil {
		return nil, nil, err
	}
	ended, err = all(t.sql, breakSQL, []any{req.Name, t.bootID, t.now.boot, int64(req.Token), req.Older, breakRows, req.Closed},
		(*ending).columns)
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(ended, func(a, b ending) int { return cmp.Compare(a.token, b.token) })
	for _, l := range ended {
		err := t.sql.run(putBrokenSQL, req.Name, req.ID, l.id, int64(l.token), l.Permits, l.holder,
			req.Author, req.Reason, t.bootID, t.now.boot, int64(t.now.micros))
		if err == nil {
			broken := driver.Event{Kind: driver.EventBroken, Name: req.Name, Token: l.token, Held: l.lasted(t.now), Author: req.Author, Reason: req.Reason}
			err = t.note(broken, l.Need, l.holder)
		}
		if err != nil {
			return nil, nil, err
		}
		t.added++
	}
	if err := t.sql.run(trimBrokenSQL, req.Name, driver.MaxBreaks); err != nil { // INVARIANT I11
		return nil, nil, err
	}
	if known, err = t.broken(req.Name); err != nil || len(ended) == 0 {
		return nil, known, err
	}
	return ended, known, t.serveNext(req.Name, v)
}

// brokenBy returns the record of a lease that was broken just now.
func (l ending) brokenBy(req driver.BreakRequest) driver.Broken {
	return driver.Broken{
		ID: req.ID, LeaseID: l.id, Token: l.token, Permits: l.Permits, Holder: describe(l.holder),
		Author: req.Author, Reason: req.Reason,
	}
}

// Breaks implements driver.Breaker. It does not wait for writers.
func (e *Engine) Breaks(ctx context.Context, name string) ([]driver.Broken, error) {
	return answer(ctx, e.query, func(r reader) ([]driver.Broken, error) { return r.broken(name) })
}

// A brokenRow is one row of the table broken.
type brokenRow struct {
	driver.Broken
	holder string
}

func (b *brokenRow) columns() []any {
	return []any{&b.ID, &b.LeaseID, &b.Token, &b.Permits, &b.holder, &b.Author, &b.Reason, &b.Ago}
}

// broken reads what is remembered of a name.
func (r *reader) broken(name string) (known []driver.Broken, err error) {
	rows, err := all(r.sql, brokenSQL, []any{name, r.bootID, r.now.boot, int64(r.now.micros)}, (*brokenRow).columns)
	for _, row := range rows {
		if row.Ago >= driver.BreakMemory {
			continue
		}
		row.Holder, row.Ago = describe(row.holder), max(row.Ago, 0)
		known = append(known, row.Broken)
	}
	return known, err
}
