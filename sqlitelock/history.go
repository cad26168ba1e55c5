package sqlitelock

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// History is a table. A change and its event are written in one transaction. Engines without the
// option neither write nor read it.

const (
	// trimEvery is about how many events of a name are written for each deletion of old ones. Old
	// events are not shown even if they have not been deleted.
	trimEvery = 16

	// unheard is how long an event is kept for listeners, however many events there are.
	unheard = 10 * feedInterval
)

// remove runs a statement that ends leases or places, and returns their number. With history
// it calls note for each of them.
func (t *tx) remove(query, returning string, args []any, note func(*row) error) (int, error) {
	if !t.history {
		return t.sql.affected(query, args...)
	}
	ended, err := scanAll(t.sql, query+returning, args, (*row).columns)
	for i := 0; i < len(ended) && err == nil; i++ {
		err = note(&ended[i])
	}
	return len(ended), err
}

// endLeases runs a statement that ends leases, writes their events, and returns their
// number.
func (t *tx) endLeases(kind lockinfo.HistoryKind, query string, args ...any) (int, error) {
	return t.remove(query, returningLeases, args, func(r *row) error {
		e := lockinfo.HistoryEvent{Kind: kind, Name: r.name, Token: r.token, Held: r.lasted(t.now)}
		switch {
		case kind != lockinfo.HistoryExpired:
		case r.released: // its end was written before
			return nil
		case r.boot == t.bootID: // else the time of its end is unknown
			e.Ago = t.now.since(r.expiry)
		}
		return t.note(e, r.Fields, r.holder)
	})
}

// endPlaces runs a statement that ends places without a lease, writes their events, and
// returns their number.
func (t *tx) endPlaces(query string, args ...any) (int, error) {
	return t.remove(query, returningPlaces, args, t.noteLeft)
}

// noteLeft writes the event of a place that ended without a lease.
func (t *tx) noteLeft(r *row) error {
	return t.note(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGaveUp, Name: r.name, Waited: r.lasted(t.now)}, r.Fields, r.holder)
}

// noteQueued writes the event of a new place; a repeated request writes none.
func (t *tx) noteQueued(req *driver.AcquireRequest, holder string) error {
	if !t.history {
		return nil
	}
	var seq int64
	if placed, err := t.sql.one(hasPlaceSQL, []any{req.Name, req.LeaseID}, &seq); placed || err != nil {
		return err
	}
	return t.note(lockinfo.HistoryEvent{Kind: lockinfo.HistoryQueued, Name: req.Name}, modes.Of(req.Mode), holder)
}

// note writes an event that happened e.Ago before now, if the engine has history.
func (t *tx) note(e lockinfo.HistoryEvent, f modes.Fields, holder string) error {
	if !t.history {
		return nil
	}
	t.added++ // the sweep deletes it later
	err := t.sql.run(noteSQL, e.Name, int(e.Kind), f.Kind, f.Limit, f.Permits, int64(e.Token), holder,
		int64(e.Waited), int64(e.Held), e.Author, e.Reason, t.bootID, t.now.boot-int64(e.Ago), int64(t.now.micros)-e.Ago.Microseconds())
	if err == nil && rand.IntN(trimEvery) == 0 { // INVARIANT I11
		err = t.sql.run(trimEventsSQL, e.Name, driver.MaxHistory, t.bootID, t.now.boot-int64(unheard), roomOf(e.Kind))
	}
	return err
}

// roomOf returns a bit for each kind of event that shares a limit with this one.
func roomOf(kind lockinfo.HistoryKind) (bits int64) {
	for k := lockinfo.HistoryGap; k <= lockinfo.HistoryCompleted; k++ {
		if k.Shares(kind) {
			bits |= 1 << k
		}
	}
	return bits
}

// endOf returns the kind of the event of a release.
func endOf(req *driver.ReleaseRequest) lockinfo.HistoryKind {
	if req.Lost {
		return lockinfo.HistoryLost
	}
	return lockinfo.HistoryReleased
}

// An event is one row of the table of that name.
type event struct {
	lockinfo.HistoryEvent
	mode      modes.Fields
	seq, wall int64
	holder    string
}

func (e *event) columns() []any {
	return []any{
		&e.seq, &e.Name, &e.Kind, &e.mode.Kind, &e.mode.Limit, &e.mode.Permits, &e.Token, &e.holder, &e.Waited, &e.Held,
		&e.Author, &e.Reason, &e.wall, &e.Ago,
	}
}

// shown returns the event for callers. Its ID contains the time, so that events of two files
// differ.
func (e *event) shown() lockinfo.HistoryEvent {
	e.ID = fmt.Sprintf("%x-%x", e.wall, e.seq)
	e.Mode = e.mode.Mode()
	e.Holder, e.Ago = holders.Read(e.holder), max(e.Ago, 0)
	return e.HistoryEvent
}

// History implements driver.Historian. It writes only if leases or places have expired.
func (e *engine) History(ctx context.Context, name string) ([]lockinfo.HistoryEvent, error) {
	if !e.history {
		return nil, fmt.Errorf("history is %w: open the file with %s=1", driver.ErrUnsupported, paramHistory)
	}
	settled := false
	events, err := answer(ctx, e.query, func(r reader) (events []lockinfo.HistoryEvent, err error) {
		v, err := r.look(name, "")
		if err != nil {
			return nil, err
		}
		if settled = v.settled() && !v.endedBy(r.now); settled {
			events, err = r.events(name)
		}
		return events, err
	})
	if settled || err != nil {
		return events, err
	}
	return answer(ctx, e.transact, func(t *tx) ([]lockinfo.HistoryEvent, error) {
		if _, err := t.settle(name, ""); err != nil {
			return nil, err
		}
		return t.events(name)
	})
}

// events reads the history of a name.
func (r *reader) events(name string) ([]lockinfo.HistoryEvent, error) {
	rows, err := scanAll(r.sql, eventsSQL, []any{name, r.bootID, r.now.boot, int64(r.now.micros)}, (*event).columns)
	var events []lockinfo.HistoryEvent
	for _, row := range driver.KeepHistory(rows, func(e event) lockinfo.HistoryKind { return e.Kind }) {
		if e := row.shown(); e.Ago < driver.HistoryMemory {
			events = append(events, e)
		}
	}
	return events, err
}
