package sqlitelock

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// breakRows bounds how many leases one transaction breaks: renewals of other leases need
// the same write lock.
const breakRows = 128

// Break implements driver.Breaker. The commit hands the lock to the next in the queue, and the
// alarm wakes the holders' processes.
func (e *engine) Break(ctx context.Context, req driver.BreakRequest) ([]lockinfo.Broken, error) {
	answer := map[uint64]lockinfo.Broken{}
	for {
		var ended, known []lockinfo.Broken
		err := e.transact(ctx, func(t *tx) (err error) {
			ended, known, err = t.breakLeases(req)
			return err
		})
		switch {
		case err != nil && len(answer) > 0:
			return nil, fmt.Errorf("broken in part: %s", err.Error()) // the outcome is unknown; a repeated request continues
		case err != nil:
			return nil, err
		}
		var ids []lockinfo.LeaseID
		for _, b := range ended { // there may be more of them than the store remembers
			ids = append(ids, b.LeaseID)
			answer[b.Token] = b
		}
		for _, b := range known {
			if b.ID == req.ID { // INVARIANT I6: ended now, or by an earlier copy
				answer[b.Token] = b
			}
		}
		e.alarm.Ring(ids)
		if len(ended) < breakRows {
			return driver.ByToken(answer), nil
		}
	}
}

// breakLeases ends the leases that match req, up to the limit of one transaction. It returns them
// and all remembered breaks of the name. INVARIANT I4: it ends only leases with the token of req
// or, with Older, smaller ones.
func (t *tx) breakLeases(req driver.BreakRequest) (ended, known []lockinfo.Broken, err error) {
	v, err := t.settle(req.Name, "")
	if err != nil {
		return nil, nil, err
	}
	rows, err := scanAll(t.sql, breakSQL, []any{req.Name, t.bootID, t.now.boot, int64(req.Token), req.Older, breakRows, req.Closed},
		(*row).columns)
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.token, b.token) })
	for _, l := range rows {
		if err := t.noteBroken(l, req); err != nil {
			return nil, nil, err
		}
		ended = append(ended, lockinfo.Broken{
			ID: req.ID, LeaseID: l.id, Token: l.token, Mode: l.Mode(), Holder: holders.Read(l.holder),
			Author: req.Author, Reason: req.Reason,
		})
	}
	if err := t.sql.run(trimBrokenSQL, req.Name, driver.MaxBreaks); err != nil { // INVARIANT I11
		return nil, nil, err
	}
	if known, err = t.broken(req.Name); err != nil || len(ended) == 0 {
		return nil, known, err
	}
	return ended, known, t.serveNext(req.Name, v)
}

// noteBroken records that a lease was broken.
func (t *tx) noteBroken(l row, req driver.BreakRequest) error {
	t.added++
	err := t.sql.run(putBrokenSQL, req.Name, req.ID, l.id, int64(l.token), l.Kind, l.Limit, l.Permits, l.holder,
		req.Author, req.Reason, t.bootID, t.now.boot, int64(t.now.micros))
	if err != nil {
		return err
	}
	broken := lockinfo.HistoryEvent{Kind: lockinfo.HistoryBroken, Name: req.Name, Token: l.token, Held: l.lasted(t.now), Author: req.Author, Reason: req.Reason}
	return t.note(broken, l.Fields, l.holder)
}

// Breaks implements driver.Breaker. It does not wait for writers.
func (e *engine) Breaks(ctx context.Context, name string) ([]lockinfo.Broken, error) {
	return answer(ctx, e.query, func(r reader) ([]lockinfo.Broken, error) { return r.broken(name) })
}

// A brokenRow is one row of the table broken.
type brokenRow struct {
	lockinfo.Broken
	modes.Fields
	holder string
}

func (b *brokenRow) columns() []any {
	return []any{&b.ID, &b.LeaseID, &b.Token, &b.Kind, &b.Limit, &b.Permits, &b.holder, &b.Author, &b.Reason, &b.Ago}
}

// broken reads the broken leases that are remembered for a name.
func (r *reader) broken(name string) (known []lockinfo.Broken, err error) {
	rows, err := scanAll(r.sql, brokenSQL, []any{name, r.bootID, r.now.boot, int64(r.now.micros)}, (*brokenRow).columns)
	for _, row := range rows {
		if row.Ago >= driver.BreakMemory {
			continue
		}
		row.Broken.Mode, row.Holder, row.Ago = row.Fields.Mode(), holders.Read(row.holder), max(row.Ago, 0)
		known = append(known, row.Broken)
	}
	return known, err
}
