// Package check judges what clients and resources saw in the fault tests.
package check

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Span is a time during which a worker trusted a lease: from after it was acquired until before
// it was released, or until it was lost. Times are nanoseconds of the wall clock, which all
// processes of a machine share.
type Span struct {
	Name    string
	LeaseID lockinfo.LeaseID
	Token   uint64
	Mode    lockinfo.Mode
	Part    int   // a lease that was downgraded has two spans
	Start   int64 // 0: the crew's last report, which is not a span
	End     int64 // 0: the lease is still held

	holder any // see Spans.Note
}

// Spans are the spans that the workers of a run saw. The zero Spans is empty and ready for
// concurrent use.
type Spans struct {
	mu    sync.Mutex // guards the rest
	spans map[spanKey]Span
	dead  map[any]int64 // the time at which a holder was killed
}

type spanKey struct {
	id    lockinfo.LeaseID
	token uint64 // of the turn
	part  int
}

// Note records a span that the holder saw, or its end. holder is any value that identifies a
// process.
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
	h.spans[spanKey{s.LeaseID, s.Token, s.Part}] = s
}

// Died records that a holder is about to be killed: it holds its leases until now.
func (h *Spans) Died(holder any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead == nil {
		h.dead = map[any]int64{}
	}
	h.dead[holder] = time.Now().UnixNano()
}

// A SpanVerdict is the judgement of Spans.
type SpanVerdict struct {
	Leases   int
	Overlaps int           // spans that overlap an incompatible one
	Longest  time.Duration // longest of the overlaps
	Disorder int           // leases whose token is not greater than earlier ones
	Errors   []string      // one for each overlap and disorder
}

// Check fails t if incompatible spans of a name overlap, or if tokens do not grow. It logs the
// numbers of leases and overlaps.
func (h *Spans) Check(t testing.TB) (seen string) {
	t.Helper()
	v := h.Judge()
	for _, err := range v.Errors {
		t.Error(err)
	}
	if v.Leases == 0 {
		t.Error("nobody has held anything")
	}
	seen = fmt.Sprintf("%d leases, %d overlaps", v.Leases, v.Overlaps)
	t.Log(seen)
	return seen
}

// Judge is Check for callers that expect errors.
func (h *Spans) Judge() (v SpanVerdict) {
	for name, spans := range h.names() {
		v.Leases += len(spans)
		v.compatible(name, spans)
		v.tokens(name, spans)
	}
	return v
}

// names returns the spans of each name, ordered by their start.
func (h *Spans) names() map[string][]Span {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := map[string][]Span{}
	for _, s := range h.spans {
		if s.End == 0 {
			s.End = h.dead[s.holder]
		}
		names[s.Name] = append(names[s.Name], s)
	}
	for _, spans := range names {
		slices.SortFunc(spans, func(a, b Span) int { return int(a.Start - b.Start) })
	}
	return names
}

func (v *SpanVerdict) errorf(format string, args ...any) {
	v.Errors = append(v.Errors, fmt.Sprintf(format, args...))
}

// compatible finds spans that overlap incompatible ones. The spans belong to one name and are
// ordered by their start.
func (v *SpanVerdict) compatible(name string, spans []Span) {
	var live []Span
	for _, s := range spans {
		live = slices.DeleteFunc(live, func(l Span) bool { return l.End <= s.Start })
		permits := s.Mode.Permits()
		for _, l := range live {
			permits += l.Mode.Permits()
			if l.Mode == lockinfo.Exclusive || s.Mode == lockinfo.Exclusive {
				v.Overlaps++
				v.Longest = max(v.Longest, time.Duration(min(l.End, s.End)-s.Start))
				v.errorf("%s: %s %s began %s before %s %s ended", name, s.Mode, s.LeaseID,
					time.Duration(l.End-s.Start), l.Mode, l.LeaseID)
			}
		}
		if permits > s.Mode.Limit() {
			v.Overlaps++
			v.errorf("%s: %d permits of %d at once", name, permits, s.Mode.Limit())
		}
		live = append(live, s)
	}
}

// tokens finds leases whose token is too small. The token of an exclusive lease must be greater
// than the tokens of all leases that began before it. The token of any other lease must be greater
// than those of the exclusive leases before it.
func (v *SpanVerdict) tokens(name string, spans []Span) {
	var greatest, exclusive uint64
	for _, s := range spans {
		if s.Part > 0 {
			continue // the same lease
		}
		least := exclusive
		if s.Mode == lockinfo.Exclusive {
			least = greatest
			exclusive = max(exclusive, s.Token)
		}
		if s.Token <= least {
			v.Disorder++
			v.errorf("%s: token %d after %d", name, s.Token, least)
		}
		greatest = max(greatest, s.Token)
	}
}
