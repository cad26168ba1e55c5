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

// A Group is the locks of one label and mode, which are measured together.
type Group struct {
	Name string // the label of the name; empty if there are no labels
	Mode string // the Kind of the mode
}

// A Standing is the present state of one Group.
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

// A beginning is a family that was measured for a Group.
type beginning struct {
	family Family
	group  Group
}

// New returns a Tally that labels names by a function, such as Fold. It has at most MaxNames
// labels, whatever the function returns. Without a function there are no labels.
func New(label func(name string) string) *Tally {
	return &Tally{
		names: NewNames(label),
		waits: map[lockinfo.LeaseID]open{}, holds: map[lockinfo.LeaseID]open{},
		began: map[beginning]struct{}{},
	}
}

// AtStart calls begin for each family of each Group that is known at the start: without labels
// that is a Group for each mode, and with labels there is none.
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

// A Measurement is what one event adds to the metrics.
type Measurement struct {
	Group

	Counter Counter // or None
	Value   string  // the value of its label
	N       int     // the number to add

	Histogram Histogram // or NoHistogram
	Seconds   float64

	// First means that the counter's family was not measured for this Group before. A metrics
	// system in which a counter should be 0 before it is 1 must begin all counters of the
	// family now.
	First bool
}

// Note counts an event. The events of one lease must arrive in their order.
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

// group returns the Group of an event. A lease stays in its first Group, even if it was
// downgraded since.
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

// follow notes the beginnings and ends of waits, outages and possessions.
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

// Now returns the present leases, waits and outages of each Group that has had an event. Without
// labels it also returns a Group for each mode.
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
