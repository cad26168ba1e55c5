package rediscore

import (
	"context"
	"strconv"
	"sync"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// A Batch is a script about many names. Its layout has keys and arguments for each of them.
type Batch struct {
	Op     string // the operation, for errors
	Script *lua.Script
	Args   []string // sent once

	Name   func(i int) (string, lockinfo.LeaseID)
	Add    func(args []string, i int) []string // adds the arguments for the i-th; may be nil
	Answer func(i int, item any, err error)    // receives the reply to the i-th
}

// EvalEach runs a batch about n names and calls Answer once for each. It makes one call, or in a
// Redis Cluster one for each slot; those for one node go in one write. It sends again what did not
// fit into a call.
func (s *Store) EvalEach(ctx context.Context, n int, b Batch) {
	groups := map[uint32][]int{} // by slot
	for i := range n {
		name, _ := b.Name(i)
		if err := s.Enter(ctx, name); err != nil {
			b.Answer(i, nil, err)
			continue
		}
		slot := s.Slot(name)
		groups[slot] = append(groups[slot], i)
	}
	routes, known := map[uint32][]uint32{}, s.nodes.known()
	for slot := range groups {
		route := known.route(slot)
		routes[route] = append(routes[route], slot)
	}
	var wg sync.WaitGroup // one goroutine per route; each handles its own requests
	for _, slots := range routes {
		if len(routes) == 1 {
			s.evalSlots(ctx, slots, groups, b)
		} else {
			wg.Go(func() { s.evalSlots(ctx, slots, groups, b) })
		}
	}
	wg.Wait()
}

// evalSlots runs the part of a batch that is about names of one route.
func (s *Store) evalSlots(ctx context.Context, slots []uint32, groups map[uint32][]int, b Batch) {
	if len(slots) == 1 {
		s.evalGroup(ctx, groups[slots[0]], b)
		return
	}
	var calls []Call
	for _, slot := range slots {
		calls = append(calls, s.call(slot, groups[slot], b))
	}
	send := func(n *node, some []Call) ([]Reply, error) {
		all, err := s.ask(ctx, func() (any, error) { return n.EvalEach(ctx, some), nil })
		replies, _ := all.([]Reply)
		return replies, err
	}
	var wg sync.WaitGroup // one goroutine per separate call
	alone := func(i int) { wg.Go(func() { s.evalGroup(ctx, groups[slots[i]], b) }) }
	s.evalTogether(calls, send, alone, func(i int, r Reply) {
		group := groups[slots[i]]
		if r.Err == nil {
			if group = b.take(group, r); len(group) == 0 {
				return
			}
		}
		wg.Go(func() {
			if r.Err != nil {
				group = b.take(group, s.repeat(ctx, b.Script, calls[i], r))
			}
			s.evalGroup(ctx, group, b)
		})
	})
	wg.Wait()
}

// evalTogether has send make the calls for the node of the first call in one write, and calls
// answer for each. Calls for other nodes go to alone, and so do calls that the node redirects or
// whose script it does not know. alone must not block. INVARIANT I9: such a call does not delay the
// others.
func (s *Store) evalTogether(calls []Call, send func(*node, []Call) ([]Reply, error), alone func(i int), answer func(i int, r Reply)) {
	known := s.nodes.known()
	n := known.node[calls[0].slot]
	var here []int
	var some []Call
	for i, c := range calls {
		if other := known.node[c.slot]; n == nil || other == nil || other.number != n.number {
			alone(i)
			continue
		}
		here, some = append(here, i), append(some, c)
	}
	if len(some) == 0 {
		return
	}
	replies, err := send(n, some)
	for k, i := range here {
		r := Reply{Err: err}
		if err == nil {
			r = replies[k]
		}
		if isUnknown(r.Err) || isElsewhere(r.Err) {
			alone(i)
		} else {
			answer(i, r)
		}
	}
}

// evalNames runs a script about many names. For each it returns what parse makes of the reply, or
// the error.
func evalNames[T any](ctx context.Context, s *Store, op string, script *lua.Script, args, names []string,
	parse func(name string, item any) (T, error),
) (found []T, failed []error) {
	found, failed = make([]T, len(names)), make([]error, len(names))
	s.EvalEach(ctx, len(names), Batch{
		Op: op, Script: script, Args: args,
		Name: func(i int) (string, lockinfo.LeaseID) { return names[i], "" },
		Answer: func(i int, item any, err error) {
			if failed[i] = err; err == nil {
				found[i], failed[i] = parse(names[i], item)
			}
		},
	})
	return found, failed
}

// evalGroup sends requests about names of one slot, in as many calls as necessary.
func (s *Store) evalGroup(ctx context.Context, group []int, b Batch) {
	for len(group) > 0 {
		c := s.call(0, group, b)
		reply, err := s.evalShared(ctx, b.Script, c.Keys, c.Args)
		group = b.take(group, Reply{reply, err})
	}
}

// call returns the call about a group.
func (s *Store) call(slot uint32, group []int, b Batch) Call {
	layout := &b.Script.Layout
	keys := make([]string, 0, len(layout.Keys)+len(layout.EachKeys)*len(group))
	keys = s.keys.Append(keys, layout.Keys, "", "")
	args := append(make([]string, 0, len(b.Args)+len(layout.EachArgs)*len(group)), b.Args...)
	shares, at := layout.Shares(), map[string]string{} // AT by name
	for _, i := range group {
		name, id := b.Name(i)
		before, sent := at[name]
		if shares && !sent {
			before = strconv.Itoa(len(keys))
			at[name] = before
		}
		if !sent {
			keys = s.keys.Append(keys, layout.EachKeys, name, id)
		}
		if shares {
			args = append(args, before)
		}
		if b.Add != nil {
			args = b.Add(args, i)
		}
	}
	_, sha := b.Script.Source()
	return Call{slot, sha, keys, args}
}

// take passes the replies to Answer, and returns the requests that did not fit into the call.
func (b Batch) take(group []int, r Reply) (again []int) {
	items, _ := r.Value.([]any)
	err := r.Err
	if err == nil && len(items) != len(group) {
		err = form.Malformed(b.Op, r.Value)
	}
	for n, i := range group {
		switch {
		case err != nil:
			b.Answer(i, nil, err)
		case isMore(items[n]):
			again = append(again, i)
		default:
			b.Answer(i, items[n], nil)
		}
	}
	return again
}
