package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A feed collects the events of an engine.
type feed struct {
	events chan lockinfo.HistoryEvent
	seen   map[string]bool // IDs
	began  time.Time
	stop   func()
}

// feed registers for events, and waits for the gap with which a feed begins.
func (t *T) feed() *feed {
	t.Helper()
	f := &feed{events: make(chan lockinfo.HistoryEvent, 1000), seen: map[string]bool{}, began: time.Now()}
	f.stop = t.Features.Historian.OnEvent(func(e lockinfo.HistoryEvent) { f.events <- e })
	t.Cleanup(f.stop)
	select {
	case e := <-f.events:
		t.need(e.Kind == lockinfo.HistoryGap, "a feed begins with %+v, want a gap", e)
		t.want(e.ID == "" && e.Name == "" && e.Token == 0, "a gap that says %+v", e)
	case <-time.After(t.soon()):
		t.Fatalf("a feed is silent for %s, want a gap as soon as it listens", t.soon())
	}
	return f
}

// soon returns how long an event may take: in real time ten times as long, for busy machines.
func (t *T) soon() time.Duration {
	if inVirtualTime(t) {
		return t.units(8)
	}
	return t.units(80)
}

// feeds fails the run unless the events of want arrive soon and in this order, and no other events.
// An event may arrive twice.
func (t *T) feeds(f *feed, want []lockinfo.HistoryEvent) {
	t.Helper()
	for limit := time.After(t.soon()); len(want) > 0; {
		select {
		case e := <-f.events:
			switch {
			case e.Kind == lockinfo.HistoryGap, f.seen[e.ID]:
			case e.ID == want[0].ID && describeEvent(e) == describeEvent(want[0]):
				want = want[1:]
			default:
				t.Errorf("a feed reports\n%s %s\nwant\n%s %s", e.ID, describeEvent(e), want[0].ID, describeEvent(want[0]))
				return
			}
			f.seen[e.ID] = true
			t.want(e.Ago >= 0 && e.Ago <= time.Since(f.began)+t.slack(), "event %s: Ago %s", e.ID, e.Ago)
		case <-limit:
			t.Errorf("a feed lacks %s", describeEvent(want[0]))
			return
		}
	}
}

// feedTells checks that the feed of t has an event for each step of other.
func feedTells(t, other *T) {
	before := other.take("a", t.units(80))
	f := t.feed()
	other.mustRelease(before)
	req := ask("a", t.units(80))
	req.Holder = t.wholeHolder()
	l := other.grant(req)
	if canQueue(t) {
		next := other.queue("a", 1)
		other.mustRelease(l)
		other.mustRelease(other.handed(next))
	}
	t.feeds(f, t.history("a")[1:])
	b := other.take("b", t.units(80))
	if canBreak(t) {
		other.mustBreak(breakOf(b))
	}
	t.feeds(f, t.history("b"))
}

func feedStops(t *T) {
	stopped, kept := t.feed(), t.feed()
	stopped.stop()
	stopped.stop()
	for len(stopped.events) > 0 {
		<-stopped.events
	}
	t.take("a", t.units(40))
	t.feeds(kept, t.history("a"))
	time.Sleep(t.slack())
	t.want(len(stopped.events) == 0, "reported %d events after stop", len(stopped.events))
}
