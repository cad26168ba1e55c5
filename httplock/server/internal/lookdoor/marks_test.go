package lookdoor

import (
	"fmt"
	"testing"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestMarksAreBounded checks that few marks are kept, however many names come and go, and that
// revisions that are too old become unknown.
func TestMarksAreBounded(t *testing.T) {
	m := newMarks()
	for list := range uint64(50) {
		locks := make([]lockinfo.LockState, 1000)
		for i := range locks {
			locks[i] = lockinfo.LockState{Name: fmt.Sprint(list, "/", i)}
		}
		m.update(list+1, locks)
		if len(m.names) > mostGone+2000 || m.gone > mostGone {
			t.Fatalf("%d names, %d of them gone", len(m.names), m.gone)
		}
	}
	if m.latest != 51 || m.oldest < 30 || m.oldest > m.latest {
		t.Errorf("revisions %d to %d", m.oldest, m.latest)
	}
}
