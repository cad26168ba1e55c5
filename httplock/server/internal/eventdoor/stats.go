package eventdoor

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	kinds = int(lockinfo.HistoryCompleted) + 1

	keptLosses = 20
)

// bounds are the upper bounds of the classes of waits, in ms. A lease that was granted at once
// is a wait of 0.
var bounds = [...]int64{
	0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000, 300_000, 900_000, 3_600_000,
}

// spans are the spans of the series of a server, in ascending order.
var spans = [...]time.Duration{15 * time.Minute, time.Hour, 24 * time.Hour}

// A stats counts the events of the last day by their time. INVARIANT I11: its size is bounded.
type stats struct {
	mu     sync.Mutex
	series [len(spans)]*series
	names  contention
	totals Totals
	begun  bool    // an event was added
	opened bool    // the gap that begins a feed was added
	last   string  // the ID of the latest event
	losses []entry // the latest, the oldest first
}

// Totals count since the server began.
type Totals struct {
	Expired, Lost, Broken int // leases
	Missed                int // how often losses may have been missed
}

func newStats() *stats {
	s := &stats{names: newContention(time.Now())}
	for i, span := range spans {
		s.series[i] = newSeries(span)
	}
	return s
}

// add counts an event that the server has just received.
func (s *stats) add(e lockinfo.HistoryEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.begun { // a feed may begin with old events
		for _, one := range s.series {
			one.began = now.Add(-min(e.Ago, one.span()))
		}
	}
	s.begun = true
	if e.Kind == lockinfo.HistoryGap {
		s.gapLocked(now)
		return
	}
	for _, one := range s.series {
		one.add(e, now)
	}
	if hidden(e.Name) {
		return
	}
	s.last = e.ID
	s.names.add(e, now)
	switch e.Kind {
	case lockinfo.HistoryExpired:
		s.totals.Expired++
	case lockinfo.HistoryLost:
		s.totals.Lost++
	case lockinfo.HistoryBroken:
		s.totals.Broken++
	default:
		return
	}
	if len(s.losses) == keptLosses {
		s.losses = slices.Delete(s.losses, 0, 1)
	}
	s.losses = append(s.losses, entry{HistoryEvent: e, heard: now})
}

// gapLocked notes that events may have been missed. The gap that begins a feed counts no missed
// losses: it is before everything that the server counts.
func (s *stats) gapLocked(now time.Time) {
	for _, one := range s.series {
		one.gap(s.opened, now)
	}
	if s.opened {
		s.totals.Missed++
	}
	s.opened = true
}

// miss notes that losses of leases may have been missed.
func (s *stats) miss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for now, i := time.Now(), 0; i < len(s.series); i++ {
		s.series[i].miss(now)
	}
	s.totals.Missed++
}

// total returns what was counted since the server began.
func (s *stats) total() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals
}

// waited returns the index of the class of a wait.
func waited(d time.Duration) int {
	within, _ := slices.BinarySearch(bounds[:], d.Milliseconds())
	return within
}

// serve answers GET /v1/stats.
func (s *stats) serve(w http.ResponseWriter, r *door.Request) error {
	if err := r.Need(caller.Read, ""); err != nil {
		return err
	}
	span, err := spanOf(r)
	if err != nil {
		return err
	}
	return door.WriteLong(w, r, s.show(span, time.Now()))
}

// spanOf returns the index of the series that a request is for.
func spanOf(r *door.Request) (int, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	text := q.Get("span_ms")
	if err == nil && text == "" && len(q) == 0 {
		return 0, nil
	}
	ms, _ := strconv.ParseInt(text, 10, 64)
	for i, span := range spans {
		if len(q) == 1 && len(q["span_ms"]) == 1 && ms > 0 && ms <= span.Milliseconds() {
			return i, nil
		}
	}
	return 0, door.Invalid(fmt.Sprintf("the query is %q: want span_ms, 1 to %d, and nothing else", r.URL.RawQuery, spans[len(spans)-1].Milliseconds()))
}

// show returns what was counted in one of the spans.
func (s *stats) show(span int, now time.Time) wire.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := wire.Stats{BoundsMS: bounds[:], LastID: s.last, Losses: []wire.HistoryEvent{}, Contended: s.names.show(now)}
	s.series[span].show(&v, now)
	for _, e := range s.losses {
		if e.Ago += now.Sub(e.heard); e.Ago < spans[span] {
			v.Losses = append(v.Losses, wire.HistoryEventOf(e.HistoryEvent))
		}
	}
	return v
}
