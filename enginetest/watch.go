package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func watchRequirements() []Requirement {
	return []Requirement{{
		Name:        "WatchSeesRelease",
		Explanation: "a watch must see every release, by cancel too, that comes after Watch returned",
		Invariant:   "I7",
		Needs:       canWatch,
		Run:         func(t *T) { watchSees(t, t) },
	}, {
		Name:        "WatchSeesReleaseAcrossEngines",
		Explanation: "a watch must see a release by another engine on the store",
		Invariant:   "I7",
		Needs:       func(t *T) bool { return canWatch(t) && hasJoin(t) },
		Run:         func(t *T) { watchSees(t, t.join()) },
	}, {
		Name:        "WatchIgnoresExtend",
		Explanation: "extending a lease must not cause a message",
		Needs:       canWatch,
		Run:         watchIgnoresExtend,
	}, {
		Name:        "WatchCollapsesSignals",
		Explanation: "signals that are not received must collapse into one and hold nobody up",
		Needs:       canWatch,
		Run:         watchCollapses,
	}, {
		Name:        "WatchStops",
		Explanation: "Stop must end one watch and no other, and a second Stop must do nothing",
		Needs:       canWatch,
		Run:         watchStops,
	}}
}

func canWatch(t *T) bool {
	_, ok := t.Engine.(driver.Notifier)
	return ok
}

// watch starts a watch and stops it when the run ends.
func (t *T) watch(name string) driver.Watch {
	t.Helper()
	w, err := t.Engine.(driver.Notifier).Watch(t.Context(), name)
	if err != nil {
		t.Fatalf("Watch(%q): %v", name, err)
	}
	t.Cleanup(w.Stop)
	return w
}

// signalled reports whether w delivers a value within d.
func signalled(w driver.Watch, d time.Duration) bool {
	select {
	case <-w.C():
		return true
	case <-time.After(d):
		return false
	}
}

// settle receives what w delivers until it has been quiet for one unit: a
// new watch may say that earlier messages were lost.
func (t *T) settle(w driver.Watch) {
	t.Helper()
	for range 20 {
		if !signalled(w, t.Unit) {
			return
		}
	}
	t.Fatalf("a watch of an unchanged lock signals without end")
}

func watchSees(t, other *T) {
	names := []string{"a", "{a}", "a b/ключ*"}
	for _, name := range names {
		l := t.take(name, t.units(400))
		w := t.watch(name)
		t.settle(w)
		for _, end := range []func(){
			func() { other.mustRelease(l) },
			func() { other.mustRelease(l) },
			func() { other.callOff(l.AcquireRequest) },
		} {
			end()
			if !signalled(w, t.units(8)) {
				t.Fatalf("no signal for %s after the release of %q", t.units(8), name)
			}
			l = t.take(name, t.units(400))
		}
	}
}

func watchIgnoresExtend(t *T) {
	l := t.take("a", t.units(40))
	w := t.watch("a")
	t.settle(w)
	for range 3 {
		t.mustExtend(l, t.units(80))
	}
	if signalled(w, t.Unit) {
		t.Errorf("Extend caused a signal")
	}
}

func watchCollapses(t *T) {
	w := t.watch("a")
	t.settle(w)
	for range 5 {
		t.mustRelease(t.take("a", t.units(40)))
	}
	time.Sleep(t.Unit)
	signals := 0
	for signalled(w, t.slack()) {
		signals++
	}
	if signals != 1 {
		t.Errorf("%d signals waited for the receiver after 5 releases, want 1", signals)
	}
}

func watchStops(t *T) {
	l := t.take("a", t.units(400))
	stopped, other := t.watch("a"), t.watch("a")
	t.settle(stopped)
	t.settle(other)
	stopped.Stop()
	stopped.Stop()
	t.mustRelease(l)
	if !signalled(other, t.units(8)) {
		t.Errorf("no signal for the watch that was not stopped")
	}
	if signalled(stopped, t.Unit) {
		t.Errorf("a signal for the watch that was stopped")
	}
	again := t.watch("a")
	t.settle(again)
	t.mustRelease(t.take("a", t.units(400)))
	if !signalled(again, t.units(8)) {
		t.Errorf("no signal for a watch started after another was stopped")
	}
}
