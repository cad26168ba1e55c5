package rules_test

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// most is the greatest number of leases, and of places, that a name has in this test.
const most = 3

// A row is a lease or a place of a name.
type row struct {
	id       int // identifies the row within one step
	need     int // index in needs
	over     bool
	released bool // a lease that is kept closed
	once     bool // a place
}

// expire keeps only the fields that code might mistake for a live row. The other fields are
// cleared, so that there are fewer states.
func (r *row) expire() { *r = row{id: r.id, need: r.need, over: true} }

func (r row) left() time.Duration {
	if r.over {
		return 0
	}
	return 1
}

// A name is the smallest engine that uses the rules: one name, without tokens.
type name struct {
	leases, queue []row
	recorded      bool
}

// A state is a name without IDs, so that states can be compared.
type state struct {
	leases, queue [most]row
	held, queued  int
	recorded      bool
}

func (n name) state() (s state) {
	s.held, s.queued, s.recorded = copy(s.leases[:], n.leases), copy(s.queue[:], n.queue), n.recorded
	for i := range s.leases {
		s.leases[i].id, s.queue[i].id = 0, 0
	}
	return s
}

// name returns a name with the state s. Each row has a new ID.
func (s state) name() name {
	n := name{slices.Clone(s.leases[:s.held]), slices.Clone(s.queue[:s.queued]), s.recorded}
	for i := range n.leases {
		n.leases[i].id = 1 + i
	}
	for i := range n.queue {
		n.queue[i].id = 1 + most + i
	}
	return n
}

// fresh is the ID of a new request.
const fresh = 1 + 2*most

func (n *name) look() (v rules.View) {
	v.Recorded = n.recorded
	for _, r := range n.leases {
		v.AddLease(needs[r.need], r.left())
	}
	for _, r := range n.queue {
		v.AddPlace(needs[r.need], r.once, r.left())
	}
	return v
}

// settle is the first step that the documentation of package rules describes.
func (n *name) settle() {
	over := func(r row) bool { return r.over }
	n.leases, n.queue = slices.DeleteFunc(n.leases, over), slices.DeleteFunc(n.queue, over)
	v := n.look()
	n.queue = slices.DeleteFunc(n.queue, func(r row) bool { return v.GivesUp(r.once) })
	for v = n.look(); v.Due(); v = n.look() {
		n.leases, n.queue = append(n.leases, row{id: n.queue[0].id, need: n.queue[0].need}), n.queue[1:]
	}
}

// ask makes one request, which may queue.
func (n *name) ask(need int, once bool) (driver.Outcome, error) {
	n.settle()
	v := n.look()
	req := driver.AcquireRequest{Mode: needs[need], Once: once}
	outcome, _, err := v.Judge(&req, 1)
	switch {
	case err != nil:
	case outcome == driver.Granted:
		n.leases = append(n.leases, row{id: fresh, need: need})
	case outcome == driver.Held:
		n.queue = append(n.queue, row{id: fresh, need: need, once: once})
	}
	return outcome, err
}

// lease returns the index of a lease that can be released, or -1 if the lease has ended.
func (n *name) lease(id int) int {
	return slices.IndexFunc(n.leases, func(r row) bool { return r.id == id && !r.released })
}

func (n *name) end(i int) { n.leases = slices.Delete(n.leases, i, i+1) }

// A step is one event for a name.
type step struct {
	name string
	do   func(*name)
	ends int  // the ID of the lease or place that the step is to end, or 0
	idle bool // no request: the step is not noticed yet
}

// steps returns all steps that are possible in s, except acquire requests.
func (s state) steps() (all []step) {
	onLease := func(text string, id int, ends int, do func(*name, int)) {
		all = append(all, step{text, func(n *name) {
			n.settle()
			if i := n.lease(id); i >= 0 {
				do(n, i)
			}
			n.settle()
		}, ends, false})
	}
	for i := range s.held {
		id := 1 + i
		onLease("release", id, id, (*name).end)
		onLease("complete", id, id, func(n *name, i int) { n.recorded = true; n.end(i) })
		onLease("keep closed", id, 0, func(n *name, i int) { n.leases[i].released = true })
		onLease("downgrade", id, 0, func(n *name, i int) {
			if needs[n.leases[i].need] == lockinfo.Exclusive {
				n.leases[i].need = 1
			}
		})
		all = append(all, step{"lease expires", func(n *name) { n.leases[i].expire() }, id, true})
	}
	for i := range s.queued {
		id := 1 + most + i
		all = append(all, step{"place expires", func(n *name) { n.queue[i].expire() }, id, true},
			step{"leave", func(n *name) {
				n.settle()
				n.queue = slices.DeleteFunc(n.queue, func(r row) bool { return r.id == id })
				n.settle()
			}, id, false})
	}
	return append(all,
		step{"refresh", (*name).settle, 0, false},
		step{"forget", func(n *name) { n.settle(); n.recorded = false }, 0, false})
}

// TestEveryHistory applies every possible step to a name, from the start and after every sequence
// of earlier steps, with up to three leases and three places. It compares the result of each step
// with the invariants.
func TestEveryHistory(t *testing.T) {
	seen := map[state]bool{{}: true}
	for queue := []state{{}}; len(queue) > 0; {
		before := queue[0]
		queue = queue[1:]
		visit := func(n name) {
			if s := n.state(); !seen[s] {
				seen[s] = true
				queue = append(queue, s)
			}
		}
		for _, step := range before.steps() {
			n := before.name()
			step.do(&n)
			h := history{t, before.name(), n, step.name, step.ends}
			h.check(!step.idle)
			visit(n)
		}
		if before.held == most || before.queued == most {
			continue
		}
		for need := range needs {
			for _, once := range []bool{false, true} {
				n := before.name()
				outcome, err := n.ask(need, once)
				h := history{t, before.name(), n, "ask", 0}
				h.check(true)
				h.checkAnswer(need, once, outcome, err)
				visit(n)
			}
		}
	}
	t.Logf("%d states", len(seen))
	if least := 10_000; len(seen) < least {
		t.Errorf("%d states, want %d at least", len(seen), least)
	}
}

// A history is one step, with the name before and after it.
type history struct {
	t             *testing.T
	before, after name
	step          string
	ends          int // the row that the step is to end
}

func (h history) fail(what string) {
	h.t.Helper()
	h.t.Fatalf("%s:\nbefore %+v\n%s\nafter  %+v", what, h.before, h.step, h.after)
}

func alive(rows []row) (live []row) {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.over })
}

func needsOf(rows []row) (all []lockinfo.Mode) {
	for _, r := range rows {
		all = append(all, needs[r.need])
	}
	return all
}

func find(rows []row, id int) *row {
	if i := slices.IndexFunc(rows, func(r row) bool { return r.id == id }); i >= 0 {
		return &rows[i]
	}
	return nil
}

// check compares a step with the invariants. noticed is whether the step read the name.
func (h history) check(noticed bool) {
	h.t.Helper()
	leases, queue := alive(h.after.leases), alive(h.after.queue)
	if !compatible(needsOf(leases)) {
		h.fail("INVARIANT I1: leases that do not go together")
	}
	for _, n := range needsOf(slices.Concat(leases, queue)) {
		if first := needsOf(slices.Concat(leases, queue))[0]; kind(n) != kind(first) {
			h.fail("INVARIANT I12: two kinds in use")
		}
	}
	if noticed && len(queue) > 0 && compatible(needsOf(append(leases, queue[0]))) {
		h.fail("INVARIANT I7: the first waits for nothing")
	}
	for _, l := range alive(h.before.leases) {
		if l.id != h.ends && find(h.after.leases, l.id) == nil {
			h.fail("a live lease is gone")
		}
	}
	h.checkPlaces(queue)
}

// checkPlaces checks INVARIANT I7: earlier places are served before later places, and no place is
// lost. Only a place that waits for work that is done gives up.
func (h history) checkPlaces(queue []row) {
	h.t.Helper()
	waits := false
	for _, p := range alive(h.before.queue) {
		now, lease := find(queue, p.id), find(h.after.leases, p.id)
		switch {
		case p.id == h.ends:
			continue
		case lease != nil && (waits || now != nil || needs[lease.need] != needs[p.need] || p.once && h.before.recorded):
			h.fail("INVARIANT I7: a place became a lease out of turn, or another lease")
		case lease == nil && now == nil && (!p.once || !h.after.recorded):
			h.fail("a live place is gone")
		case now != nil && p.once && h.after.recorded:
			h.fail("a place waits for what is done")
		}
		waits = waits || now != nil
	}
	for i, p := range queue {
		if i > 0 && queue[i-1].id >= p.id {
			h.fail("INVARIANT I7: the queue is out of order")
		}
	}
}

// checkAnswer compares the reply to a request with its effect.
func (h history) checkAnswer(need int, once bool, outcome driver.Outcome, err error) {
	h.t.Helper()
	others := slices.DeleteFunc(slices.Concat(alive(h.after.leases), alive(h.after.queue)), func(r row) bool { return r.id == fresh })
	lease, place := find(h.after.leases, fresh), find(h.after.queue, fresh)
	differs := len(others) > 0 && kind(needs[others[0].need]) != kind(needs[need])
	granted, queued := false, false
	switch {
	case once && h.before.recorded:
		if outcome != driver.Recorded || err != nil {
			h.fail("what is done is asked for, and the answer does not say so")
		}
	case differs:
		if err == nil {
			h.fail("INVARIANT I12: another kind is let in")
		}
	case err != nil:
		h.fail("INVARIANT I12: a request of the same kind is refused")
	default:
		granted, queued = outcome == driver.Granted, outcome == driver.Held
	}
	if granted != (lease != nil) || queued != (place != nil) {
		h.fail("the answer is not what was done")
	}
	if granted && len(alive(h.after.queue)) > 0 {
		h.fail("INVARIANT I7: a new request is granted in front of those who wait")
	}
	if queued && len(alive(h.after.queue)) == 1 && compatible(append(needsOf(alive(h.after.leases)), needs[need])) {
		h.fail("a request waits for nothing")
	}
}
