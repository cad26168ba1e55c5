package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// A history records one run. Its methods are safe for concurrent use. Its lock may be taken with
// the server's lock held, never the other way round.
type history struct {
	began time.Time

	mu         sync.Mutex // guards the rest
	events     []event
	violations []string
	first      int // number of events before the first violation

	tainted  time.Time // when the store lost data or its clock went forward; zero: never
	lost     bool      // the store lost data
	tenures  map[holdfast.LeaseID]*tenure
	byName   map[string][]*tenure
	askedBy  map[holdfast.LeaseID]*host // the host that requested a lease ID
	waiting  map[string]int             // number of workers that wait for a name, on living hosts
	onces    map[string]*onceBook
	accepted map[string][]write // by resource
	counts   map[string]int
}

// An event is one line of the trace. It is formatted only if it is printed.
type event struct {
	at     time.Time
	format string
	args   []any
}

// A tenure is the time for which one client trusted one lease in one mode.
type tenure struct {
	lease    *holdfast.Lease
	holder   string
	by       *host // the host whose client has the lease
	left     bool  // left for another host to adopt
	mode     holdfast.Mode
	from, to time.Time // to is zero while the tenure lasts
}

// A write is a write that a resource accepted.
type write struct {
	token uint64
	id    holdfast.LeaseID
}

func newHistory() *history {
	return &history{
		began: time.Now(), tenures: map[holdfast.LeaseID]*tenure{}, byName: map[string][]*tenure{},
		askedBy: map[holdfast.LeaseID]*host{}, waiting: map[string]int{}, onces: map[string]*onceBook{},
		accepted: map[string][]write{}, counts: map[string]int{},
	}
}

// note adds a line to the trace.
func (h *history) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noteLocked(format, args...)
}

func (h *history) noteLocked(format string, args ...any) {
	h.events = append(h.events, event{time.Now(), format, args})
}

// violate records a violation.
func (h *history) violate(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.violateLocked(format, args...)
}

func (h *history) violateLocked(format string, args ...any) {
	if len(h.violations) == 0 {
		h.first = len(h.events)
	}
	h.violations = append(h.violations, h.line(event{time.Now(), format, args}))
	h.noteLocked("VIOLATION: "+format, args...)
}

func (h *history) line(e event) string {
	return fmt.Sprintf("%12.6f  ", e.at.Sub(h.began).Seconds()) + fmt.Sprintf(e.format, e.args...)
}

// Lines of the trace that are printed around the first violation.
const (
	linesBefore = 120
	linesAfter  = 20
)

// trace returns the events around the first violation.
func (h *history) trace() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, e := range h.events[max(0, h.first-linesBefore):min(len(h.events), h.first+linesAfter)] {
		b.WriteString(h.line(e) + "\n")
	}
	return b.String()
}

// taint records that two holders are allowed from now on. lost means that the store lost data.
func (h *history) taint(lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = h.lost || lost
	if h.tainted.IsZero() {
		h.tainted = time.Now()
	}
}

func (h *history) isTainted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.tainted.IsZero()
}

func (h *history) count(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[what]++
}

// asks records which host sends requests for a lease ID.
func (h *history) asks(id holdfast.LeaseID, by *host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.askedBy[id] = by
}

// waits records that a worker starts (1) or stops (-1) waiting for a name.
func (h *history) waits(name string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting[name] += n
}
