package mailbox_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/mailbox"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// unread returns the tokens of the notices that w has not received.
func unread(w driver.Watch) (tokens []uint64) {
	for {
		select {
		case notice := <-w.C():
			tokens = append(tokens, notice.Token)
		default:
			return tokens
		}
	}
}

// watched returns the watched lease IDs with their notes.
func watched(b *mailbox.Box[string]) map[lockinfo.LeaseID]string {
	all := map[lockinfo.LeaseID]string{}
	b.Each(func(id lockinfo.LeaseID, note *string) { all[id] = *note })
	return all
}

// TestNoticeGivesWay checks that a watch holds one notice at most. A later notice replaces it, but
// only a grant replaces a grant.
func TestNoticeGivesWay(t *testing.T) {
	var b mailbox.Box[string]
	one, twin, other := b.Watch("a"), b.Watch("a"), b.Watch("b")
	for _, c := range []struct {
		told []uint64
		want uint64
	}{
		{[]uint64{0}, 0}, {[]uint64{5}, 5}, {[]uint64{0, 0}, 0}, {[]uint64{0, 5}, 5}, {[]uint64{5, 0}, 5},
		{[]uint64{5, 7}, 7}, {[]uint64{7, 5}, 5}, {[]uint64{5, 0, 4, 0}, 4}, {[]uint64{0, 5, 0, 0}, 5},
	} {
		for _, token := range c.told {
			if !b.Tell("a", driver.Notice{Token: token}) {
				t.Error("Tell says that nobody watches")
			}
		}
		for _, w := range []driver.Watch{one, twin} {
			if got := fmt.Sprint(unread(w)); got != fmt.Sprint([]uint64{c.want}) {
				t.Errorf("after Tell of %v: a watch has %s, want [%d]", c.told, got, c.want)
			}
		}
	}
	if got := unread(other); got != nil {
		t.Errorf("a watch of another lease ID has %v", got)
	}
}

// TestNoticeBeforeListening checks that a late listener receives once the notice that it would have
// received earlier.
func TestNoticeBeforeListening(t *testing.T) {
	for _, c := range []struct {
		before, after []uint64
		want          string
	}{
		{nil, nil, "[]"}, {[]uint64{0}, nil, "[0]"}, {[]uint64{5}, nil, "[5]"}, {[]uint64{5, 0}, nil, "[5]"}, {[]uint64{0, 5}, nil, "[5]"},
		{[]uint64{5, 7}, nil, "[7]"}, {[]uint64{5}, []uint64{0}, "[5]"}, {[]uint64{0}, []uint64{5}, "[5]"}, {nil, []uint64{5, 0}, "[5]"},
	} {
		var b mailbox.Box[string]
		for _, w := range []driver.Watch{b.Watch("a"), b.Watch("a")} {
			for _, token := range c.before {
				b.Tell("a", driver.Notice{Token: token})
			}
			listened := w.C()
			for _, token := range c.after {
				b.Tell("a", driver.Notice{Token: token})
			}
			if got := fmt.Sprint(unread(w)); got != c.want || w.C() != listened {
				t.Errorf("after Tell of %v, C, and Tell of %v: received %s, want %s", c.before, c.after, got, c.want)
			}
			if got := unread(w); got != nil {
				t.Errorf("after Tell of %v and %v: received %v again", c.before, c.after, got)
			}
			w.Stop()
		}
	}
}

// TestWatchCost checks that a watch without notices and listeners is one allocation.
func TestWatchCost(t *testing.T) {
	var b mailbox.Box[string]
	if n := testing.AllocsPerRun(100, func() { b.Watch("a").Stop() }); n > 1 {
		t.Errorf("%.0f allocations, want 1", n)
	}
}

// TestTellAll checks that TellAll sends every watch a notice, and replaces no grant.
func TestTellAll(t *testing.T) {
	var b mailbox.Box[string]
	one, twin, other := b.Watch("a"), b.Watch("a"), b.Watch("b")
	b.Tell("b", driver.Notice{Token: 5})
	b.TellAll()
	if got := fmt.Sprint(unread(one), unread(twin), unread(other)); got != "[0] [0] [5]" {
		t.Errorf("the watches have %s, want [0] [0] [5]", got)
	}
}

// TestStop checks that a stopped watch receives nothing, and that a second Stop does not stop
// another watch, not even a later one.
func TestStop(t *testing.T) {
	var b mailbox.Box[string]
	one, twin := b.Watch("a"), b.Watch("a")
	one.Stop()
	one.Stop()
	if !b.Tell("a", driver.Notice{Token: 5}) {
		t.Error("the second watch was stopped with the first")
	}
	if got := fmt.Sprint(unread(one), unread(twin)); got != "[] [5]" {
		t.Errorf("the watches have %s, want [] [5]", got)
	}
	twin.Stop()
	twin.Stop()
	if b.Tell("a", driver.Notice{}) || len(watched(&b)) != 0 {
		t.Errorf("after the last Stop there is %v", watched(&b))
	}
	late := b.Watch("a")
	one.Stop()
	twin.Stop()
	b.Tell("a", driver.Notice{Token: 7})
	if got := fmt.Sprint(unread(late)); got != "[7]" {
		t.Errorf("a later watch has %s, want [7]", got)
	}
	latest := b.Watch("a")
	latest.Stop()
	b.Tell("a", driver.Notice{Token: 9})
	if got := fmt.Sprint(unread(late), unread(latest)); got != "[9] []" {
		t.Errorf("the watches have %s, want [9] [], because the second was stopped", got)
	}
	late.Stop()
}

// TestNote checks that the note of a lease ID is empty at first, is shared by its watches, and ends
// with the last watch.
func TestNote(t *testing.T) {
	var b mailbox.Box[string]
	add := func(id lockinfo.LeaseID, text string) bool {
		return b.Note(id, func(note *string) { *note += text })
	}
	if add("a", "x") || len(watched(&b)) != 0 {
		t.Error("something is noted of a lease ID that nobody watches")
	}
	one, twin, other := b.Watch("a"), b.Watch("a"), b.Watch("b")
	if !add("a", "x") || !add("a", "y") || !add("b", "z") {
		t.Error("nothing is noted of a lease ID that is watched")
	}
	one.Stop()
	if got := watched(&b); len(got) != 2 || got["a"] != "xy" || got["b"] != "z" {
		t.Errorf("noted %v, want a: xy, b: z", got)
	}
	b.Each(func(_ lockinfo.LeaseID, note *string) { *note = strings.ToUpper(*note) })
	twin.Stop()
	again := b.Watch("a")
	if got := watched(&b); len(got) != 2 || got["a"] != "" || got["b"] != "Z" {
		t.Errorf("noted %v, want nothing of a, b: Z", got)
	}
	again.Stop()
	other.Stop()
}

// TestGrantIsNeverLost checks that no grant is lost while notices, receivers and stops are
// concurrent.
func TestGrantIsNeverLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // ends the test if a goroutine waits for ever
		var b mailbox.Box[string]
		const last = 500
		var all sync.WaitGroup
		for range 4 {
			w := b.Watch("a")
			all.Go(func() {
				defer w.Stop()
				for (<-w.C()).Token != last {
				}
			})
			all.Go(func() {
				for range last {
					b.Tell("a", driver.Notice{})
					b.TellAll()
					b.Watch("a").Stop()
				}
			})
		}
		for token := range uint64(last) {
			b.Tell("a", driver.Notice{Token: token + 1})
		}
		all.Wait()
		if n := len(watched(&b)); n != 0 {
			t.Errorf("%d lease IDs are watched, want 0", n)
		}
	})
}
