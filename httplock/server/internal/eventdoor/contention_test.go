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
