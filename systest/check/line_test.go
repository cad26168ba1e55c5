package check

import (
	"testing"

	"github.com/holdfast-locks/holdfast/systest/model/lease"
)

// TestTurns checks that a request that was served before an earlier one is found, and that requests
// that left the queue, or were never granted the lock, are ignored.
func TestTurns(t *testing.T) {
	var h History
	for i, id := range []string{"a", "b", "c"} {
		h.Note(granted(id, int64(i), uint64(5+i)))
	}
	h.Note(Op{Name: "a/b", Kind: lease.Acquire, LeaseID: "left", Outcome: lease.Unknown})
	for _, c := range []struct {
		lines        []Line
		turns, wrong int
	}{
		{nil, 0, 0},
		{[]Line{{"a/b", []string{"a"}}}, 0, 0},
		{[]Line{{"a/b", []string{"a", "b", "c"}}, {"a/b", []string{"b", "c"}}}, 2, 0},
		{[]Line{{"a/b", []string{"a", "left", "unheard", "c"}}}, 1, 0},
		{[]Line{{"a/b", []string{"b", "a", "c"}}}, 2, 1},
		{[]Line{{"a/b", []string{"c", "b", "left", "a"}}}, 2, 2},
	} {
		turns := h.Turns(c.lines)
		wrong := 0
		for _, turn := range turns {
			if !turn.InTurn() {
				wrong++
			}
		}
		if len(turns) != c.turns || wrong != c.wrong {
			t.Errorf("%v: %v, %d wrong", c.lines, turns, wrong)
		}
	}
}
