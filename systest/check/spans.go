// Package check holds the verdicts of the fault tests on what clients and
// resources saw.
package check

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Span is the time during which a worker took a lease for valid: from after
// it was acquired until before it was released, or until it was lost. Instants
// are nanoseconds of the wall clock, which all processes of a machine share.
type Span struct {
	Name    string
	LeaseID driver.LeaseID
	Token   uint64
	Mode    driver.Mode
	Limit   int
	Permits int
	Part    int   // a lease that was downgraded has two spans
	Start   int64 // 0: the crew's last report, which is no span
	End     int64 // 0: the lease is held still

	holder any // of Spans.Note
}

// Spans are what the workers of a run saw. The zero Spans is empty and ready to
// use, by many goroutines.
type Spans struct {
	mu    sync.Mutex // guards the rest
	spans map[spanKey]Span
	dead  map[any]int64 // when a holder was killed
}

type spanKey struct {
	id   driver.LeaseID
	part int
}

// Note records a span that the holder saw, or its end. The holder is any value
// that tells one process from another.
func (h *Spans) Note(holder any, s Span) {
	if s.Start == 0 {
		return
	}
	s.holder = holder
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.spans == nil {
		h.spans = map[spanKey]Span{}
	}
	h.spans[spanKey{s.LeaseID, s.Part}] = s
}

// Died records that a holder is about to be killed: what it holds, it holds
// until now.
func (h *Spans) Died(holder any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead == nil {
		h.dead = map[any]int64{}
	}
	h.dead[holder] = time.Now().UnixNano()
}

// Check fails t if two spans of a name overlap that must not, or if the tokens
// do not grow. It says how much it has seen.
func (h *Spans) Check(t testing.TB) (seen string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	names := map[string][]Span{}
	for _, s := range h.spans {
		if s.End == 0 {
			s.End = h.dead[s.holder]
		}
		names[s.Name] = append(names[s.Name], s)
	}
	overlaps := 0
	for name, spans := range names {
		slices.SortFunc(spans, func(a, b Span) int { return int(a.Start - b.Start) })
		overlaps += checkCompatible(t, name, spans)
		checkTokens(t, name, spans)
		t.Logf("%s: %d leases", name, len(spans))
	}
	if len(h.spans) == 0 {
		t.Error("nobody has held anything")
	}
	seen = fmt.Sprintf("%d leases, %d overlaps", len(h.spans), overlaps)
	t.Log(seen)
	return seen
}

// checkCompatible returns how many spans began beside others that they are not
// compatible with. The spans are those of one name, by their start.
func checkCompatible(t testing.TB, name string, spans []Span) (overlaps int) {
	t.Helper()
	var live []Span
	for _, s := range spans {
		live = slices.DeleteFunc(live, func(l Span) bool { return l.End <= s.Start })
		permits := s.Permits
		for _, l := range live {
			permits += l.Permits
			if l.Mode == driver.Exclusive || s.Mode == driver.Exclusive {
				overlaps++
				t.Errorf("%s: %s %s began %s before %s %s ended", name, s.Mode, s.LeaseID,
					time.Duration(l.End-s.Start), l.Mode, l.LeaseID)
			}
		}
		if permits > s.Limit {
			overlaps++
			t.Errorf("%s: %d permits of %d at once", name, permits, s.Limit)
		}
		live = append(live, s)
	}
	return overlaps
}

// checkTokens fails if an exclusive lease has not a greater token than all
// that began before it, or a later one not a greater one than it.
func checkTokens(t testing.TB, name string, spans []Span) {
	t.Helper()
	var greatest, exclusive uint64
	for _, s := range spans {
		if s.Part > 0 {
			continue // the same lease
		}
		least := exclusive
		if s.Mode == driver.Exclusive {
			least = greatest
			exclusive = max(exclusive, s.Token)
		}
		if s.Token <= least {
			t.Errorf("%s: token %d after %d", name, s.Token, least)
		}
		greatest = max(greatest, s.Token)
	}
}
