package mem

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// TestListLooksAtFewNames checks that a list visits the names in use only, not all names that the
// engine remembers.
func TestListLooksAtFewNames(t *testing.T) {
	e := New(nil)
	for i := range 1000 {
		drivertest.Cycle(t, e, fmt.Sprint("remembered/", i))
	}
	for i := range 10 {
		drivertest.Granted(t, e, drivertest.Request(fmt.Sprint("held/", i), time.Hour))
	}
	for range 2 {
		n := 0
		for _, err := range e.List(t.Context(), "") {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != 10 || len(e.touched) != 10 {
			t.Errorf("%d locks in the list, which looks at %d names, want 10", n, len(e.touched))
		}
	}
}

// TestListAfterRestart checks that a restarted member lists no locks.
func TestListAfterRestart(t *testing.T) {
	m := NewMember()
	drivertest.Granted(t, m.Engine(), drivertest.Request("held", time.Hour))
	m.Restart()
	for lock, err := range m.List(t.Context(), "") {
		t.Errorf("%+v, %v; want nothing", lock, err)
	}
}
