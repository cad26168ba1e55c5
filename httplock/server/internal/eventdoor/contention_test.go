package eventdoor

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestContendedIsBounded checks that the most contended of many names are shown, and that only few
// names are kept.
func TestContendedIsBounded(t *testing.T) {
	now := time.Now()
	c := newContention(now)
	for i := range 5000 {
		for range 2 {
			e := lockinfo.HistoryEvent{Kind: lockinfo.HistoryGaveUp, Name: fmt.Sprint("n", i), Waited: time.Duration(i*7919%5000) * time.Millisecond}
			c.add(e, now)
		}
	}
	for _, slot := range c.ring {
		if len(slot) > mostNames {
			t.Errorf("%d names are kept, want %d at most", len(slot), mostNames)
		}
	}
	all := c.show(now)
	if len(all) != shownNames || all[0].WaitedMS != 2*4999 || all[19].WaitedMS != 2*4980 || all[0].Waits != 2 {
		t.Errorf("%d names, %+v", len(all), all)
	}
}

// TestContendedReplays checks that a waiter that gets the result of do-once work does not count as
// one that gave up.
func TestContendedReplays(t *testing.T) {
	now := time.Now()
	c := newContention(now)
	add := func(kind lockinfo.HistoryKind, ago, waited time.Duration, once bool) {
		c.add(lockinfo.HistoryEvent{Kind: kind, Name: "n", Ago: ago, Waited: waited, Holder: lockinfo.Holder{Once: once}}, now)
	}
	add(lockinfo.HistoryGaveUp, 6*time.Second, time.Second, true)
	add(lockinfo.HistoryCompleted, 5*time.Second, 0, true)
	add(lockinfo.HistoryGaveUp, 5*time.Second, time.Second, true)
	add(lockinfo.HistoryGaveUp, 4*time.Second, 2*time.Second, false)
	add(lockinfo.HistoryGaveUp, 2*time.Second, time.Second, true)
	if all := c.show(now); len(all) != 1 || all[0].Waits != 4 || all[0].GaveUp != 3 {
		t.Errorf("contended: %+v, want 3 of 4 that gave up", all)
	}
	for i := range 3 * mostNames {
		c.add(lockinfo.HistoryEvent{Kind: lockinfo.HistoryCompleted, Name: fmt.Sprint("n", i)}, now)
	}
	if len(c.done) > mostNames {
		t.Errorf("%d names are kept, want %d at most", len(c.done), mostNames)
	}
}
