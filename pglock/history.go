package pglock

import (
	"context"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// An event is one row of the table of that name.
type event struct {
	row
	Number int    `json:"kind"`
	Waited int64  `json:"waited"`
	Held   int64  `json:"held"`
	Author string `json:"author"`
	Reason string `json:"reason"`
	At     int64  `json:"at"`
	Ago    int64  `json:"ago"`
}

// shown returns the event for callers. Its ID contains the time, because the numbers of a name that
// was forgotten start again.
func (v *event) shown() lockinfo.HistoryEvent {
	return lockinfo.HistoryEvent{
		ID: fmt.Sprintf("%x-%x-%x", v.At, v.Seq, crc32.ChecksumIEEE([]byte(v.Name))), Kind: lockinfo.HistoryKind(v.Number), Name: v.Name, Ago: max(duration(v.Ago), 0),
		Mode: v.mode(), Token: v.Token, Holder: holders.Read(v.Holder), Waited: duration(v.Waited), Held: duration(v.Held),
		Author: v.Author, Reason: v.Reason,
	}
}

// History implements driver.Historian. It writes only if leases or places have expired.
func (e *engine) History(ctx context.Context, name string) (all []lockinfo.HistoryEvent, err error) {
	if !e.opts.History {
		return nil, fmt.Errorf("history is %w: open the database with history=1", driver.ErrUnsupported)
	}
	var rows []event
	if err := e.change(ctx, waiting, "history", []any{name}, inJSON(&rows)); err != nil {
		return nil, err
	}
	for _, v := range driver.KeepHistory(rows, func(v event) lockinfo.HistoryKind { return lockinfo.HistoryKind(v.Number) }) {
		if duration(v.Ago) < driver.HistoryMemory {
			all = append(all, v.shown())
		}
	}
	return all, nil
}

// A follower is the feed, and the numbers of the events that it has delivered.
type follower struct {
	driver.Feed
	mu      sync.Mutex
	listens bool             // the ear listens for events
	since   int64            // its beginning, by the store's clock
	last    map[string]int64 // the number of the last delivered event, by name
}

// maxFollowed bounds the names of a follower. INVARIANT I11.
const maxFollowed = 4096

// OnEvent implements driver.Historian.
func (e *engine) OnEvent(listener func(lockinfo.HistoryEvent)) (stop func()) {
	if !e.opts.History {
		return func() {}
	}
	f := &e.feed
	f.mu.Lock()
	leave := f.OnEvent(listener, f.listens)
	f.mu.Unlock()
	e.listenLater()
	e.wakeEar()
	return func() {
		leave()
		e.wakeEar()
	}
}

// lost notes that events may be missed from now on.
func (f *follower) lost() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listens = false
}

// begin starts the feed at an instant, and sends all callers a gap event for the time before it.
func (f *follower) begin(since int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listens, f.since, f.last = true, since, map[string]int64{}
	f.Tell(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap})
}

// followFeed starts or stops listening for events, as callers require. While they do, it refreshes
// the row that makes engines send events.
func (l *listening) followFeed() error {
	ctx, cancel := context.WithTimeout(l.life, hearingTime)
	defer cancel()
	wanted := l.feed.Heard()
	switch {
	case wanted && !l.feeding:
		if err := l.exec(ctx, "LISTEN "+l.channel(events)); err != nil {
			return err
		}
	case !wanted && l.feeding:
		l.feed.lost()
		l.feeding = false
		return l.exec(ctx, "UNLISTEN "+l.channel(events))
	case !wanted || time.Since(l.renewed) < hearingTest:
		return nil
	}
	var clock int64
	if err := l.call(ctx, renewing, "listen", []any{l.inbox}, &clock); err != nil {
		return err
	}
	l.renewed = time.Now()
	if l.feeding {
		return nil
	}
	l.feeding = true
	err := l.awaitWriters(ctx)
	l.feed.begin(clock)
	return err
}

// awaitWriters waits until the transactions have ended that may have checked for listeners before
// this one was registered, but at most about a second. The gap event then follows them.
func (l *listening) awaitWriters(ctx context.Context) (err error) {
	var later, oldest uint64
	const snapshot = "SELECT pg_catalog.pg_snapshot_xmax(s)::text::bigint, pg_catalog.pg_snapshot_xmin(s)::text::bigint FROM pg_catalog.pg_current_snapshot() AS s"
	err = l.conn.QueryRow(ctx, snapshot).Scan(&later, &oldest)
	for wait := time.Millisecond; err == nil && oldest < later && wait < 512*time.Millisecond; wait *= 2 {
		time.Sleep(wait)
		err = l.conn.QueryRow(ctx, snapshot).Scan(new(uint64), &oldest)
	}
	return err
}

// feedEvents delivers the events of a message, and earlier ones that have not been delivered:
// messages of several engines may arrive out of order.
func (l *listening) feedEvents(payload string) error {
	var from, to int64
	if n, err := fmt.Sscan(payload, &from, &to); n != 2 || !l.feeding {
		return err
	}
	name := strings.SplitN(payload, " ", 3)[2]
	f := &l.feed
	last, known := f.last[name]
	if known && last >= to {
		return nil
	}
	var rows []event
	var since int64
	if !known {
		since = f.since
	}
	ctx, cancel := context.WithTimeout(l.life, hearingTime)
	defer cancel()
	if err := l.call(ctx, renewing, "events_of", []any{name, last, since, from}, inJSON(&rows)); err != nil {
		return err
	}
	for _, v := range rows {
		if known && v.Seq != last+1 {
			f.Tell(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap})
		}
		known, last = true, v.Seq
		f.Tell(v.shown())
	}
	if len(f.last) >= maxFollowed {
		f.begin(f.since)
	}
	f.last[name] = last
	return nil
}
