package eventdoor

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestRing checks that a reader at any place gets the next events in order, or a gap, even if
// events are added twice, and that the ring keeps no more events than its size.
func TestRing(t *testing.T) {
	const size = 8
	g := newRing(size)
	at := make([]uint64, 5) // places of readers, each of which reads after a number of events
	seen := make([]int, len(at))
	for i := range at {
		at[i], _ = g.place("")
	}
	for n := range 1000 {
		e := lockinfo.HistoryEvent{ID: strconv.Itoa(n), Kind: lockinfo.HistoryAcquired}
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

// TestChunks checks that readers that see all names soon get the same chunks, and each event once,
// though they begin at different places and read one after the other.
func TestChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRing(1000)
		n := 0
		add := func() {
			n++
			g.add(lockinfo.HistoryEvent{ID: strconv.Itoa(n), Kind: lockinfo.HistoryAcquired})
		}
		at := make([]uint64, 40)
		for i := range at {
			add()
			at[i], _ = g.place("")
		}
		made := map[*chunk]bool{}
		for round := range 5 {
			clear(made)
			for i := range at {
				add()
				was := at[i]
				c, whole, _, gap := g.all(&at[i])
				if c == nil || c.from != was || c.to != at[i] || !whole || gap {
					t.Fatalf("from %d on: %+v, %v, %v", was, c, whole, gap)
				}
				made[c] = true
			}
			if round > 0 && len(made) != 1 {
				t.Errorf("%d chunks for %d readers, want one", len(made), len(at))
			}
		}
		if len(g.chunks) > keptChunks {
			t.Errorf("%d chunks are kept, want %d at most", len(g.chunks), keptChunks)
		}
	})
}

// TestLateReader checks that, in a crowd, a reader that reads late gets the same chunk as the
// others, and the next chunk at the next step, though there are more events by then.
func TestLateReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRing(1000)
		g.readers.Store(100)
		var first, late uint64
		g.add(lockinfo.HistoryEvent{ID: "1", Kind: lockinfo.HistoryAcquired})
		made, _, _, _ := g.all(&first)
		g.add(lockinfo.HistoryEvent{ID: "2", Kind: lockinfo.HistoryAcquired})
		time.Sleep(2 * pause)
		if c, whole, _, _ := g.all(&late); c != made || !whole {
			t.Errorf("the same chunk: %v, whole: %v", c == made, whole)
		}
		time.Sleep(g.step())
		if c, whole, _, _ := g.all(&late); c.from != 1 || c.to != 2 || !whole {
			t.Errorf("%+v, whole: %v", c, whole)
		}
	})
}
