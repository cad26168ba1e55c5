package eventdoor

import (
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// kept is how many buckets a series has: the full ones of its span, and the current one.
const kept = 181

// A series counts events in buckets by their time. INVARIANT I11: its size is fixed.
type series struct {
	every  time.Duration // the length of a bucket
	began  time.Time     // the beginning of bucket 0
	newest int           // the number of the current bucket
	deaf   int           // the number of the bucket of a gap without an event since; else -1
	ring   [kept]bucket  // bucket n is at n % kept
}

// A bucket has the counts of one interval.
type bucket struct {
	counts [kinds]int // of HistoryGap: 1 if there was a gap
	waits  [len(bounds) + 1]int
	missed bool // losses of leases may have been missed
}

// newSeries returns a series with this span.
func newSeries(span time.Duration) *series {
	return &series{every: span / (kept - 1), began: time.Now(), deaf: -1}
}

// span is the time of all full buckets.
func (s *series) span() time.Duration { return (kept - 1) * s.every }

// number adds buckets up to now, and returns the number of the bucket of at. It is -1 if at is
// before bucket 0.
func (s *series) number(at, now time.Time) int {
	for last := int(now.Sub(s.began) / s.every); s.newest < last; {
		s.newest = max(s.newest+1, last-kept+1) // older ones would be forgotten at once
		s.ring[s.newest%kept] = bucket{}
	}
	if at.Before(s.began) {
		return -1
	}
	return int(at.Sub(s.began) / s.every)
}

// add counts an event.
func (s *series) add(e lockinfo.HistoryEvent, now time.Time) {
	n := s.number(now.Add(-e.Ago), now)
	s.deaf = -1
	if n < 0 || n <= s.newest-kept || hidden(e.Name) || int(e.Kind) >= kinds {
		return
	}
	b := &s.ring[n%kept]
	b.counts[e.Kind]++
	if e.Kind.Begins() {
		b.waits[waited(e.Waited)]++
	}
}

// gap marks the buckets of a gap. missed means that losses of leases may have been missed. An
// engine reports a gap when it is cut off, and another when it is connected again: without an
// event between them, the two are one gap.
func (s *series) gap(missed bool, now time.Time) {
	n := s.number(now, now)
	from := n
	if s.deaf >= 0 {
		from = max(s.deaf, s.newest-kept+1)
	}
	for ; from <= n; from++ {
		b := &s.ring[from%kept]
		b.counts[lockinfo.HistoryGap] = 1
		b.missed = b.missed || missed
	}
	s.deaf = n
}

// miss notes that losses of leases may have been missed.
func (s *series) miss(now time.Time) { s.ring[s.number(now, now)%kept].missed = true }

// show adds the buckets to v.
func (s *series) show(v *wire.Stats, now time.Time) {
	s.number(now, now)
	v.EveryMS = s.every.Milliseconds()
	for n := max(0, s.newest-kept+1); n <= s.newest; n++ {
		b := &s.ring[n%kept]
		v.Buckets = append(v.Buckets, b.show(now.Sub(s.began.Add(time.Duration(n)*s.every))))
		v.LossesAtLeast = v.LossesAtLeast || b.missed
	}
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
