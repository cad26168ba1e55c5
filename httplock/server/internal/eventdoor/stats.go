package eventdoor

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	every = 5 * time.Second
	kept  = 181 // buckets: those of 15 minutes, and the one that is not over
	kinds = int(driver.EventCompleted) + 1

	keptLosses = 20
)

// bounds are those of the waits in ms. A lease that was granted at once is a wait of 0.
var bounds = [...]int64{
	0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000, 300_000, 900_000, 3_600_000,
}

// A stats counts the events of the last 15 minutes by when they happened. INVARIANT I11: it
// is as long as it is.
type stats struct {
	began time.Time

	mu     sync.Mutex
	newest int          // the number of the bucket that is not over
	deaf   int          // the number of the bucket in which there was a gap, and nothing was heard since; else -1
	ring   [kept]bucket // number n is at n % kept
	last   string       // the ID of the latest event
	losses []entry      // the latest, the oldest first
}

// A bucket is what happened in one step.
type bucket struct {
	counts [kinds]int // that of EventGap says whether there was one
	waits  [len(bounds) + 1]int
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
func (s *stats) add(e driver.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	n := s.numberLocked(now.Add(-e.Ago), now)
	if e.Kind == driver.EventGap {
		s.gapLocked(n)
		return
	}
	s.deaf = -1
	if hidden(e.Name) {
		return // nobody hears of it
	}
	if s.last = e.ID; n < 0 || n <= s.newest-kept || int(e.Kind) >= kinds {
		return
	}
	b := &s.ring[n%kept]
	b.counts[e.Kind]++
	if e.Kind.Begins() {
		b.waits[waited(e.Waited)]++
	}
	if e.Kind == driver.EventLost || e.Kind == driver.EventExpired || e.Kind == driver.EventBroken {
		if len(s.losses) == keptLosses {
			s.losses = slices.Delete(s.losses, 0, 1)
		}
		s.losses = append(s.losses, entry{e, now})
	}
}

// gapLocked marks a bucket. An engine tells of a gap when it is cut off, and again when it
// hears: all between the two that have nothing else between them is one gap.
func (s *stats) gapLocked(n int) {
	from := n
	if s.deaf >= 0 {
		from = max(s.deaf, s.newest-kept+1)
	}
	for ; from <= n; from++ {
		s.ring[from%kept].counts[driver.EventGap] = 1
	}
	s.deaf = n
}

// waited returns which of the bounds a wait is within.
func waited(d time.Duration) int {
	for i, bound := range bounds {
		if d.Milliseconds() <= bound {
			return i
		}
	}
	return len(bounds)
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
	}
	for _, e := range s.losses {
		if e.Ago += now.Sub(e.heard); e.Ago < (kept-1)*every {
			v.Losses = append(v.Losses, wire.HistoryEventOf(e.Event))
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
		AgoMS: ago.Milliseconds(), Gap: b.counts[driver.EventGap] > 0,
		Acquired: b.counts[driver.EventAcquired], HandedOver: b.counts[driver.EventHandedOver],
		Released: b.counts[driver.EventReleased], Expired: b.counts[driver.EventExpired], Lost: b.counts[driver.EventLost],
		Broken: b.counts[driver.EventBroken], Queued: b.counts[driver.EventQueued], Left: b.counts[driver.EventLeft],
		Completed: b.counts[driver.EventCompleted], Waits: append([]int{}, b.waits[:long]...),
	}
}
