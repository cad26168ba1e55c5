package sqlitelock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
)

// History is a table, which is written in the transactions that do what it tells of,
// by engines that were opened with it. The others neither write nor read it.

const (
	// trimEvery is about how many events of a name are written for each time that those
	// before its latest are deleted. Nobody is shown them meanwhile.
	trimEvery = 16

	// unheard is how long an event stays for those who listen, however many there are.
	unheard = 10 * feedInterval
)

// An ending is a row that a statement has taken from the table lease, or from place.
type ending struct {
	rules.Need
	name     string
	id       driver.LeaseID
	token    uint64 // of a lease
	holder   string // JSON
	began    int64  // the grant, or the first request
	until    int64
	released bool // of a lease: it was over before, and kept closed
}

func (r *ending) columns() []any {
	return []any{&r.name, &r.id, &r.Mode, &r.Limit, &r.Permits, &r.token, &r.holder, &r.began, &r.until, &r.released}
}

// lasted returns for how long, now that it is over.
func (r *ending) lasted(now instant) time.Duration {
	return time.Duration(max(min(now.boot, r.until)-r.began, 0))
}

// endLeases runs a statement that ends leases, writes down how they have ended, and
// returns their number.
func (t *tx) endLeases(kind driver.EventKind, query string, args ...any) (int, error) {
	if !t.history {
		return t.sql.affected(query, args...)
	}
	ended, err := all(t.sql, query+returningLeases, args, (*ending).columns)
	for i := 0; i < len(ended) && err == nil; i++ {
		if r := &ended[i]; !r.released || kind != driver.EventExpired {
			err = t.note(driver.Event{Kind: kind, Name: r.name, Token: r.token, Held: r.lasted(t.now)}, r.Need, r.holder)
		}
	}
	return len(ended), err
}

// endPlaces runs a statement that ends places, writes that they have ended without a
// lease, and returns their number.
func (t *tx) endPlaces(query string, args ...any) (int, error) {
	if !t.history {
		return t.sql.affected(query, args...)
	}
	ended, err := all(t.sql, query+returningPlaces, args, (*ending).columns)
	for i := 0; i < len(ended) && err == nil; i++ {
		err = t.noteLeft(&ended[i])
	}
	return len(ended), err
}

// noteLeft writes that a place has ended without a lease.
func (t *tx) noteLeft(r *ending) error {
	return t.note(driver.Event{Kind: driver.EventLeft, Name: r.name, Waited: r.lasted(t.now)}, r.Need, r.holder)
}

// noteQueued writes that a request is given a place, unless it has one.
func (t *tx) noteQueued(req *driver.AcquireRequest, holder string) error {
	if !t.history {
		return nil
	}
	var seq int64
	if placed, err := t.sql.one(hasPlaceSQL, []any{req.Name, req.LeaseID}, &seq); placed || err != nil {
		return err
	}
	return t.note(driver.Event{Kind: driver.EventQueued, Name: req.Name}, rules.NeedOf(req), holder)
}

// note writes an event down, if the engine has history.
func (t *tx) note(e driver.Event, n rules.Need, holder string) error {
	if !t.history {
		return nil
	}
	t.added++ // it is litter tomorrow
	err := t.sql.run(noteSQL, e.Name, int(e.Kind), n.Mode, n.Limit, n.Permits, int64(e.Token), holder,
		int64(e.Waited), int64(e.Held), e.Author, e.Reason, t.bootID, t.now.boot, int64(t.now.micros))
	if err == nil && rand.IntN(trimEvery) == 0 { // INVARIANT I11
		err = t.sql.run(trimEventsSQL, e.Name, driver.MaxHistory, t.bootID, t.now.boot-int64(unheard))
	}
	return err
}

// endOf returns how a lease ends that is given back.
func endOf(req *driver.ReleaseRequest) driver.EventKind {
	if req.Lost {
		return driver.EventLost
	}
	return driver.EventReleased
}

// An event is one row of the table of that name.
type event struct {
	driver.Event
	seq, wall int64
	kind      int
	holder    string
}

func (e *event) columns() []any {
	return []any{
		&e.seq, &e.Name, &e.kind, &e.Mode, &e.Limit, &e.Permits, &e.Token, &e.holder, &e.Waited, &e.Held,
		&e.Author, &e.Reason, &e.wall, &e.Ago,
	}
}

// shown returns what is told of the event. The time is in its ID, so that those of two
// files are not confused.
func (e *event) shown() driver.Event {
	e.ID = fmt.Sprintf("%x-%x", e.wall, e.seq)
	e.Kind, e.Holder, e.Ago = driver.EventKind(e.kind), describe(e.holder), max(e.Ago, 0)
	return e.Event
}

// History implements driver.Historian. It writes only if there is something to notice.
func (e *Engine) History(ctx context.Context, name string) ([]driver.Event, error) {
	if !e.history {
		return nil, fmt.Errorf("history is %w: open the file with %s=1", driver.ErrUnsupported, paramHistory)
	}
	settled := false
	events, err := answer(ctx, e.query, func(r reader) (events []driver.Event, err error) {
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
	return answer(ctx, e.transact, func(t *tx) ([]driver.Event, error) {
		if _, err := t.settle(name, ""); err != nil {
			return nil, err
		}
		return t.events(name)
	})
}

// events reads the history of a name.
func (r *reader) events(name string) ([]driver.Event, error) {
	rows, err := all(r.sql, eventsSQL, []any{name, r.bootID, r.now.boot, int64(r.now.micros), driver.MaxHistory}, (*event).columns)
	var events []driver.Event
	for _, row := range slices.Backward(rows) {
		if e := row.shown(); e.Ago < driver.HistoryMemory {
			events = append(events, e)
		}
	}
	return events, err
}
