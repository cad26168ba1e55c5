package eventdoor

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	// slotFor is the length of a slot of a contention, and slots is the number of slots: an
	// hour of them, and the current one.
	slotFor = 5 * time.Minute
	slots   = 13

	// mostNames is how many names a slot may have. If it has more, the half with the
	// shortest waits is forgotten.
	mostNames = 1024

	shownNames = 20

	// leadLabel is holdfast.LeadLabel.
	leadLabel = "holdfast/lead"
)

// A contention sums up the waits of the last hour by name. INVARIANT I11: its size is bounded.
type contention struct {
	window[map[string]wire.Contended]
	done map[string]time.Time // when do-once work was completed, by name; the latest mostNames at most
}

// newContention returns a contention that also counts waits of the hour before now.
func newContention(now time.Time) contention {
	return contention{window[map[string]wire.Contended]{
		every: slotFor, began: now.Add(-slots * slotFor), ring: make([]map[string]wire.Contended, slots),
	}, map[string]time.Time{}}
}

// add counts the end of a wait. It leaves out candidates for leadership, which wait for hours
// on purpose.
func (c *contention) add(e lockinfo.HistoryEvent, now time.Time) {
	at := now.Add(-e.Ago)
	if e.Kind == lockinfo.HistoryCompleted {
		if len(c.done) == mostNames {
			clear(c.done)
		}
		c.done[e.Name] = at
	}
	if e.Kind != lockinfo.HistoryHandedOver && e.Kind != lockinfo.HistoryGaveUp || hidden(e.Name) || e.Holder.Labels[leadLabel] != "" {
		return
	}
	slot := c.at(at, now)
	if slot == nil {
		return
	}
	if *slot == nil {
		*slot = map[string]wire.Contended{}
	}
	one := wire.Contended{Name: e.Name, Waits: 1, WaitedMS: e.Waited.Milliseconds(), LongestMS: e.Waited.Milliseconds()}
	if e.Kind == lockinfo.HistoryGaveUp && !c.replayed(e, at) {
		one.GaveUp = 1
	}
	(*slot)[e.Name] = sum((*slot)[e.Name], one)
	if len(*slot) > mostNames {
		for _, light := range heaviest(*slot)[mostNames/2:] {
			delete(*slot, light.Name)
		}
	}
}

// replayed reports whether a wait that ended at an instant got the result of do-once work: the
// store ends the places in the step that completes the work.
func (c *contention) replayed(e lockinfo.HistoryEvent, at time.Time) bool {
	done, known := c.done[e.Name]
	return known && e.Holder.Once && !at.Add(-e.Waited).After(done)
}

// show returns the names with the longest total waits.
func (c *contention) show(now time.Time) []wire.Contended {
	c.turn(now)
	all := map[string]wire.Contended{}
	for _, slot := range c.ring {
		for name, one := range slot {
			all[name] = sum(all[name], one)
		}
	}
	list := heaviest(all)
	return list[:min(len(list), shownNames)]
}

func sum(a, b wire.Contended) wire.Contended {
	return wire.Contended{
		Name: b.Name, Waits: a.Waits + b.Waits, GaveUp: a.GaveUp + b.GaveUp,
		WaitedMS: a.WaitedMS + b.WaitedMS, LongestMS: max(a.LongestMS, b.LongestMS),
	}
}

// heaviest sorts names by their total waits, the longest first.
func heaviest(all map[string]wire.Contended) []wire.Contended {
	list := slices.AppendSeq(make([]wire.Contended, 0, len(all)), maps.Values(all))
	slices.SortFunc(list, func(a, b wire.Contended) int {
		return cmp.Or(cmp.Compare(b.WaitedMS, a.WaitedMS), cmp.Compare(a.Name, b.Name))
	})
	return list
}
