package eventdoor

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	every = 5 * time.Second
	kept  = 181 // buckets: 15 minutes, and the current one
	kinds = int(lockinfo.HistoryCompleted) + 1

	keptLosses = 20
)

// bounds are the classes of waits in ms. A lease that was granted at once is a wait of 0.
var bounds = [...]int64{
	0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000, 300_000, 900_000, 3_600_000,
}

// A stats counts the events of the last 15 minutes by their time. INVARIANT I11: its size is
// fixed.
type stats struct {
	began time.Time

	mu     sync.Mutex
	newest int          // the number of the current bucket
	deaf   int          // the number of the bucket in which there was a gap, and nothing was heard since; else -1
	ring   [kept]bucket // number n is at n % kept
	totals Totals
	opened bool    // the gap has come with which a feed begins
	last   string  // the ID of the latest event
	losses []entry // the latest, the oldest first
}

// Totals count since the server began.
type Totals struct {
	Expired, Lost, Broken int // leases
	Missed                int // times that leases may have been lost which are not counted
}

// A bucket is what happened in one step.
type bucket struct {
	counts [kinds]int // of HistoryGap: 1 if there was a gap
	waits  [len(bounds) + 1]int
	missed bool // leases may have been lost that are not counted
}

func newStats() *stats { return &stats{began: time.Now(), deaf: -1} }

// numberLocked returns the number of the bucket of an instant, once there are buckets up to now.
func (s *stats) numberLocked(at, now time.Time) int {
	for last := int(now.Sub(s.began) / every); s.newest < last; {
		s.newest = max(s.newest+1, last-kept+1) // older ones would be forgotten at once
		s.ring[s.newest%kept] = bucket{}
	}
	if at.Before(s.began) {
		return -1
	}
	return int(at.Sub(s.began) / every)
}

// add counts an event that has just been heard of.
func (s *stats) add(e lockinfo.HistoryEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	n := s.numberLocked(now.Add(-e.Ago), now)
	if e.Kind == lockinfo.HistoryGap {
		s.gapLocked(n)
		return
	}
	s.deaf = -1
	if hidden(e.Name) {
		return // hidden
	}
	switch e.Kind {
	case lockinfo.HistoryExpired:
		s.totals.Expired++
	case lockinfo.HistoryLost:
		s.totals.Lost++
	case lockinfo.HistoryBroken:
		s.totals.Broken++
	}
	if s.last = e.ID; n < 0 || n <= s.newest-kept || int(e.Kind) >= kinds {
		return
	}
	b := &s.ring[n%kept]
	b.counts[e.Kind]++
	if e.Kind.Begins() {
		b.waits[waited(e.Waited)]++
	}
	if e.Kind == lockinfo.HistoryLost || e.Kind == lockinfo.HistoryExpired || e.Kind == lockinfo.HistoryBroken {
		if len(s.losses) == keptLosses {
			s.losses = slices.Delete(s.losses, 0, 1)
		}
		s.losses = append(s.losses, entry{HistoryEvent: e, heard: now})
	}
}

// gapLocked marks a bucket. An engine reports a gap when it is cut off, and another when it
// is connected again: with no event between them both are one gap.
func (s *stats) gapLocked(n int) {
	from := n
	if s.deaf >= 0 {
		from = max(s.deaf, s.newest-kept+1)
	}
	for ; from <= n; from++ {
		b := &s.ring[from%kept]
		b.counts[lockinfo.HistoryGap] = 1
		b.missed = b.missed || s.opened
	}
	if s.opened {
		s.totals.Missed++
	}
	s.deaf, s.opened = n, true
}

// miss notes that leases may have been lost that are not counted.
func (s *stats) miss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.ring[s.numberLocked(now, now)%kept].missed = true
	s.totals.Missed++
}

// total returns what was counted since the server began.
func (s *stats) total() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals
}

// waited returns which of the bounds a wait is within.
func waited(d time.Duration) int {
	within, _ := slices.BinarySearch(bounds[:], d.Milliseconds())
	return within
}

// serve answers GET /v1/stats.
func (s *stats) serve(w http.ResponseWriter, r *door.Request) error {
	if err := r.Need(caller.Read, ""); err != nil {
		return err
	}
	return door.Write(w, http.StatusOK, s.show(time.Now()))
}

// show returns what was counted.
func (s *stats) show(now time.Time) wire.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numberLocked(now, now)
	v := wire.Stats{EveryMS: every.Milliseconds(), BoundsMS: bounds[:], LastID: s.last, Losses: []wire.HistoryEvent{}}
	for n := max(0, s.newest-kept+1); n <= s.newest; n++ {
		b := s.ring[n%kept]
		ago := now.Sub(s.began.Add(time.Duration(n) * every))
		v.Buckets = append(v.Buckets, b.show(ago))
		v.LossesAtLeast = v.LossesAtLeast || b.missed
	}
	for _, e := range s.losses {
		if e.Ago += now.Sub(e.heard); e.Ago < (kept-1)*every {
			v.Losses = append(v.Losses, wire.HistoryEventOf(e.HistoryEvent))
		}
	}
	return v
}

func (b *bucket) show(ago time.Duration) wire.Bucket {
	long := len(b.waits)
	for long > 0 && b.waits[long-1] == 0 {
		long--
	}
	return wire.Bucket{
		AgoMS: ago.Milliseconds(), Gap: b.counts[lockinfo.HistoryGap] > 0, Missed: b.missed,
		Acquired: b.counts[lockinfo.HistoryAcquired], HandedOver: b.counts[lockinfo.HistoryHandedOver],
		Released: b.counts[lockinfo.HistoryReleased], Expired: b.counts[lockinfo.HistoryExpired], Lost: b.counts[lockinfo.HistoryLost],
		Broken: b.counts[lockinfo.HistoryBroken], Queued: b.counts[lockinfo.HistoryQueued], GaveUp: b.counts[lockinfo.HistoryGaveUp],
		Completed: b.counts[lockinfo.HistoryCompleted], Waits: append([]int{}, b.waits[:long]...),
	}
}
