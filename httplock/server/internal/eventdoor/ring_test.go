package eventdoor

import (
	"strconv"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
)

// Whatever is added, twice or not, with gaps between, a reader in any place gets the rest
// in order, or a gap; and the ring keeps no more than its size.
func TestRing(t *testing.T) {
	const size = 8
	g := newRing(size)
	at := make([]uint64, 5) // of readers that look every so many events
	seen := make([]int, len(at))
	for i := range at {
		at[i], _ = g.place("")
	}
	for n := range 1000 {
		e := driver.Event{ID: strconv.Itoa(n), Kind: driver.EventAcquired}
		g.add(e)
		g.add(e)
		for i := range at {
			if n%(4*i+1) != 0 {
				continue
			}
			some, _, gap := g.from(&at[i], 100)
			if first, _ := strconv.Atoi(some[0].ID); first != seen[i] && !gap || first < seen[i] {
				t.Fatalf("event %d comes after %d, gap: %v", first, seen[i]-1, gap)
			}
			for k, e := range some {
				if id, _ := strconv.Atoi(e.ID); id != n+1-len(some)+k {
					t.Fatalf("event %d is number %d of %d before %d", id, k, len(some), n)
				}
			}
			seen[i] = n + 1
		}
	}
	if len(g.events) != size || len(g.byID) != size {
		t.Errorf("%d events and %d IDs in a ring of %d", len(g.events), len(g.byID), size)
	}
	if at, known := g.place("995"); !known || at != 996 {
		t.Errorf("behind 995 is %d, %v", at, known)
	}
	if at, known := g.place("17"); known || at != 992 {
		t.Errorf("behind what is forgotten is %d, %v", at, known)
	}
	if some, _, _ := g.from(new(uint64), 3); len(some) != 3 || some[0].ID != "992" {
		t.Errorf("%v", some)
	}
}
