package driver_test

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func event(i int) lockinfo.HistoryEvent {
	return lockinfo.HistoryEvent{ID: strconv.Itoa(i), Kind: lockinfo.HistoryAcquired}
}

// TestFeedTellsInOrder checks that each listener receives all events in order until it stops. Tell
// does not wait, and a listener may listen, stop or tell.
func TestFeedTellsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f driver.Feed
		f.Tell(event(0)) // there is no listener
		if f.Heard() {
			t.Error("heard by somebody")
		}
		var first, second []string
		stop := f.OnEvent(func(e lockinfo.HistoryEvent) { first = append(first, e.ID) }, false)
		var once func()
		once = f.OnEvent(func(e lockinfo.HistoryEvent) {
			second = append(second, e.ID)
			once()
			f.Tell(event(4))
		}, false)
		f.Tell(event(1), event(2))
		f.Tell(event(3))
		synctest.Wait()
		stop()
		stop()
		f.Tell(event(5))
		synctest.Wait()
		if len(first) != 4 || first[0]+first[1]+first[2]+first[3] != "1234" || len(second) != 1 || f.Heard() {
			t.Errorf("received %v and %v; heard %t", first, second, f.Heard())
		}
	})
}

// TestFeedIsBounded checks that the events that wait for a blocked listener are bounded, and that a
// gap replaces those that were dropped.
func TestFeedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f driver.Feed
		var told []lockinfo.HistoryEvent
		blocked := make(chan struct{})
		defer f.OnEvent(func(e lockinfo.HistoryEvent) {
			<-blocked
			told = append(told, e)
		}, false)()
		f.Tell(event(0))
		synctest.Wait()
		const many = 10_000
		for i := range many {
			f.Tell(event(1 + i))
		}
		close(blocked)
		synctest.Wait()
		if len(told) > 4100 || told[1].Kind != lockinfo.HistoryGap || told[len(told)-1].ID != strconv.Itoa(many) {
			t.Errorf("received %d events, the second %+v, the last %+v", len(told), told[1], told[len(told)-1])
		}
		for i := 3; i < len(told); i++ {
			before, _ := strconv.Atoi(told[i-1].ID)
			if now, _ := strconv.Atoi(told[i].ID); now != before+1 {
				t.Fatalf("%s was delivered after %s", told[i].ID, told[i-1].ID)
			}
		}
	})
}

// TestFeedBeginsWithGap checks that a new listener first receives a gap, if requested, and that
// other listeners do not receive it.
func TestFeedBeginsWithGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f driver.Feed
		var first, second []lockinfo.HistoryKind
		defer f.OnEvent(func(e lockinfo.HistoryEvent) { first = append(first, e.Kind) }, true)()
		f.Tell(event(1)) // event 1 waits
		defer f.OnEvent(func(e lockinfo.HistoryEvent) { second = append(second, e.Kind) }, true)()
		f.Tell(event(2))
		synctest.Wait()
		if want := []lockinfo.HistoryKind{lockinfo.HistoryGap, lockinfo.HistoryAcquired}; !slices.Equal(second, want) || !slices.Equal(first, append(want, want[1])) {
			t.Errorf("received %v and %v", first, second)
		}
	})
}
