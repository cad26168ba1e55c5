package check

import (
	"fmt"
	"sync"
	"testing"
)

// A Write is one claim that a resource accepted or refused.
type Write struct {
	Resource string
	LeaseID  string
	Token    uint64
	Accepted bool
}

// Writes is the log of the resources of a run, in the order of each resource. The zero Writes is
// empty and ready for concurrent use.
type Writes struct {
	mu  sync.Mutex // guards log
	log []Write
}

// Note records the decision of a resource. Accepted writes of one resource must be noted in the
// order in which it accepted them.
func (w *Writes) Note(e Write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, e)
}

// Faults returns how many claims were accepted and refused, and the errors in that: accepted
// tokens must never decrease, and may be equal only for the same lease, and each refusal must
// have a reason.
func (w *Writes) Faults() (accepted, refused int, faults []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	marks := map[string]Write{}
	for _, e := range w.log {
		mark := marks[e.Resource]
		passes := e.Token > mark.Token || e.Token == mark.Token && e.LeaseID == mark.LeaseID
		if e.Accepted {
			accepted++
		} else {
			refused++
		}
		if passes != e.Accepted {
			faults = append(faults, fmt.Sprintf("%s: token %d of lease %.6s after token %d of lease %.6s: accepted is %v",
				e.Resource, e.Token, e.LeaseID, mark.Token, mark.LeaseID, e.Accepted))
		}
		if e.Accepted {
			marks[e.Resource] = e
		}
	}
	return accepted, refused, faults
}

// Check fails t if there is a fault, or if nothing was written.
func (w *Writes) Check(t testing.TB) (accepted, refused int) {
	t.Helper()
	accepted, refused, faults := w.Faults()
	for _, f := range faults[:min(10, len(faults))] {
		t.Error(f)
	}
	if accepted == 0 {
		t.Error("nothing was written")
	}
	return accepted, refused
}
