package eventdoor

import (
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// kept is how many buckets a series has: the full ones of its span, and the current one.
const kept = 181

// A window has a value for each of the latest steps of time. INVARIANT I11: its size is fixed.
type window[T any] struct {
	every  time.Duration // the length of a step
	began  time.Time     // the beginning of step 0
	newest int           // the number of the current step
	ring   []T           // step n is at n % len(ring)
}

// turn makes the step of now current, and forgets the steps that are too old.
func (w *window[T]) turn(now time.Time) {
	for last := int(now.Sub(w.began) / w.every); w.newest < last; {
		w.newest = max(w.newest+1, last-len(w.ring)+1) // older ones would be forgotten at once
		*w.number(w.newest) = *new(T)
	}
}

// number returns the value of step n, which the window must have.
func (w *window[T]) number(n int) *T { return &w.ring[n%len(w.ring)] }

// at returns the value of the step of an instant, or nil if the window does not have that step.
func (w *window[T]) at(instant, now time.Time) *T {
	w.turn(now)
	n := int(instant.Sub(w.began) / w.every)
	if instant.Before(w.began) || n <= w.newest-len(w.ring) {
		return nil
	}
	return w.number(n)
}

// A series counts events in buckets by their time.
type series struct {
	window[bucket]
	deaf int // the number of the bucket of a gap without an event since; else -1
}

// A bucket has the counts of one interval.
type bucket struct {
	counts [kinds]int // of HistoryGap: 1 if there was a gap
	waits  [len(bounds) + 1]int
	missed bool // losses of leases may have been missed
}

// newSeries returns a series with this span.
func newSeries(span time.Duration) *series {
	return &series{window[bucket]{every: span / (kept - 1), began: time.Now(), ring: make([]bucket, kept)}, -1}
}

// span is the time of all full buckets.
func (s *series) span() time.Duration { return (kept - 1) * s.every }

// add counts an event.
func (s *series) add(e lockinfo.HistoryEvent, now time.Time) {
	b := s.at(now.Add(-e.Ago), now)
	s.deaf = -1
	if b == nil || hidden(e.Name) || int(e.Kind) >= kinds {
		return
	}
	b.counts[e.Kind]++
	if e.Kind.Begins() {
		b.waits[waited(e.Waited)]++
	}
}

// gap marks the buckets of a gap. missed means that losses of leases may have been missed. An
// engine reports a gap when it is cut off, and another when it is connected again: without an
// event between them, the two are one gap.
func (s *series) gap(missed bool, now time.Time) {
	s.turn(now)
	from := s.newest
	if s.deaf >= 0 {
		from = max(s.deaf, s.newest-kept+1)
	}
	for ; from <= s.newest; from++ {
		b := s.number(from)
		b.counts[lockinfo.HistoryGap] = 1
		b.missed = b.missed || missed
	}
	s.deaf = s.newest
}

// miss notes that losses of leases may have been missed.
func (s *series) miss(now time.Time) { s.at(now, now).missed = true }

// show adds the buckets to v.
func (s *series) show(v *wire.Stats, now time.Time) {
	s.turn(now)
	v.EveryMS = s.every.Milliseconds()
	for n := max(0, s.newest-kept+1); n <= s.newest; n++ {
		b := s.number(n)
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
