package tally

import (
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/observe"
)

// A Tally follows events. It is safe for concurrent use, and may receive the
// events of several clients, services and guards.
type Tally struct {
	names *Names

	mu    sync.Mutex
	waits map[lockinfo.LeaseID]open // by Event.Key
	holds map[lockinfo.LeaseID]open
	began map[beginning]struct{}
}

// A Group is what is measured apart: the locks of one label and mode.
type Group struct {
	Name string // the label of the name; empty if there are no labels
	Mode string // the Kind of it
}

// A Standing is what goes on in one Group.
type Standing struct {
	Waiting, InOutage, Held int
	OldestWait, LongestHold time.Duration
}

// open is a wait or a possession.
type open struct {
	group  Group
	since  time.Time
	outage bool
}

// A beginning is the first event of a family about a Group.
type beginning struct {
	family Family
	group  Group
}

// New returns a Tally that labels names by a function, such as Fold: MaxNames of
// them at most, whatever it returns. Without a function there are no labels.
func New(label func(name string) string) *Tally {
	return &Tally{
		names: NewNames(label),
		waits: map[lockinfo.LeaseID]open{}, holds: map[lockinfo.LeaseID]open{},
		began: map[beginning]struct{}{},
	}
}

// AtStart calls begin for each family of each Group that is known before anything
// happens: of all modes where there are no labels, and of none where there are.
func (t *Tally) AtStart(begin func(Family, Group)) {
	if t.Named() {
		return
	}
	for _, mode := range Modes() {
		for _, family := range Families() {
			begin(family, Group{Mode: mode})
		}
	}
}

// Named reports whether there are labels.
func (t *Tally) Named() bool { return t.names.On() }

// A Measurement is what there is to add because of one event.
type Measurement struct {
	Group

	Counter Counter // or None
	Value   string  // of its label
	N       int     // how many

	Histogram Histogram // or NoHistogram
	Seconds   float64

	// First: nothing of the counter's family was measured for this Group before. A
	// system where a counter should be 0 before it is 1 begins all of the family
	// now.
	First bool
}

// Note takes an event in. The events of one lease have to come in their order.
func (t *Tally) Note(e observe.Event) Measurement {
	m := Measurement{Group: t.group(e)}
	m.Counter, m.Value, m.N = count(e)
	m.Histogram, m.Seconds = measure(e)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.follow(e, m.Group)
	if m.Counter != None {
		b := beginning{counters()[m.Counter].Family, m.Group}
		if _, known := t.began[b]; !known {
			t.began[b] = struct{}{}
			m.First = true
		}
	}
	return m
}

// group returns the group of an event. A lease stays in its first group, even if
// it was downgraded since.
func (t *Tally) group(e observe.Event) Group {
	if e.EndsHold() {
		t.mu.Lock()
		h, known := t.holds[e.Key]
		t.mu.Unlock()
		if known {
			return h.group
		}
	}
	return Group{Name: t.names.Label(e.Name), Mode: e.Mode.Kind()}
}

// follow notes what begins and what ends.
func (t *Tally) follow(e observe.Event, group Group) {
	switch {
	case e.BeginsWait():
		t.waits[e.Key] = open{group: group, since: e.Time.Add(-e.Waited)}
	case e.Kind == observe.OutageBegan, e.Kind == observe.OutageEnded:
		if w, waits := t.waits[e.Key]; waits {
			w.outage = e.Kind == observe.OutageBegan
			t.waits[e.Key] = w
		}
	case e.EndsHold():
		delete(t.holds, e.Key)
	}
	if e.EndsWait() {
		delete(t.waits, e.Key)
	}
	if e.BeginsHold() {
		t.holds[e.Key] = open{group: group, since: e.Time}
	}
}

// Now returns the leases, waits and outages of this moment in each Group that had any
// event. Without labels it returns a Group for each mode from the beginning.
func (t *Tally) Now() map[Group]Standing {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[Group]Standing{}
	wanted := func(f Family, g Group) {
		if f == Locks {
			all[g] = Standing{}
		}
	}
	t.AtStart(wanted)
	for b := range t.began {
		wanted(b.family, b.group)
	}
	for _, w := range t.waits {
		s := all[w.group]
		s.Waiting++
		if w.outage {
			s.InOutage++
		}
		s.OldestWait = max(s.OldestWait, now.Sub(w.since))
		all[w.group] = s
	}
	for _, h := range t.holds {
		s := all[h.group]
		s.Held++
		s.LongestHold = max(s.LongestHold, now.Sub(h.since))
		all[h.group] = s
	}
	return all
}
