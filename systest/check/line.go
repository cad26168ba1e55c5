package check

import (
	"fmt"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/systest/model/lease"
)

// A Line is the queue of a name at one time: the lease IDs of the requests, in the order of the
// store.
type Line struct {
	Name     string
	LeaseIDs []string
}

// LineOf returns the queue of a lock.
func LineOf(l lockinfo.LockState) Line {
	line := Line{Name: l.Name}
	for _, w := range l.Queue {
		line.LeaseIDs = append(line.LeaseIDs, string(w.LeaseID))
	}
	return line
}

// A Turn is a pair of requests that were queued one after the other and were both granted
// the lock.
type Turn struct{ First, Second Op }

func (t Turn) String() string {
	return fmt.Sprintf("%s: %.6s of client %d has token %d, and was queued before %.6s of client %d, which has %d",
		t.First.Name, t.First.LeaseID, t.First.Client, t.First.Token, t.Second.LeaseID, t.Second.Client, t.Second.Token)
}

// InTurn reports whether the two were served in the order of the queue.
func (t Turn) InTurn() bool { return t.First.Token < t.Second.Token }

// Turns returns all pairs of neighbours in a line that were both granted the lock, each pair
// once. Requests between them, if any, left the queue.
func (h *History) Turns(lines []Line) (turns []Turn) {
	granted := map[string]Op{}
	for _, o := range h.Ops() {
		if o.Kind == lease.Acquire && o.Outcome == lease.Done {
			granted[o.LeaseID] = o
		}
	}
	known := map[[2]string]bool{}
	for _, line := range lines {
		var before Op
		for _, id := range line.LeaseIDs {
			o, ok := granted[id]
			if !ok {
				continue
			}
			if two := [2]string{before.LeaseID, id}; before.LeaseID != "" && !known[two] {
				known[two] = true
				turns = append(turns, Turn{before, o})
			}
			before = o
		}
	}
	return turns
}
