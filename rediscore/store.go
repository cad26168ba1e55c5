package rediscore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// A Store is the part of an Engine that the packages under it share: a connection, and the keys of
// one prefix. Its methods are for those packages.
type Store struct {
	conn    Conn
	cluster bool
	keys    keys.Space
	inbox   *inbox
	workers *workers
	nodes   *nodes // nil unless in a Redis Cluster
	listen  func() // inbox.listen, as a value that is allocated once

	direct Direct       // nil if conn is not a Direct
	asking atomic.Int32 // requests in progress about one name

	// life ends with Close. It is a field because it is not a caller's context: it bounds the
	// engine's own work.
	life context.Context
}

// Conn returns the connection.
func (s *Store) Conn() Conn { return s.conn }

// Keys returns the names of the keys.
func (s *Store) Keys() keys.Space { return s.keys }

// Enter returns an error if no request about name may be sent.
func (s *Store) Enter(ctx context.Context, name string) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.life.Err() != nil:
		return driver.ErrClosed
	}
	return s.keys.Check(name)
}

// Slot returns the slot of a name in a Redis Cluster, otherwise 0. One script cannot serve names
// with different slots.
func (s *Store) Slot(name string) uint32 {
	if !s.cluster {
		return 0
	}
	return uint32(keys.Slot(s.keys.Lock(name)))
}

// Route returns a number for the node that serves a name in a Redis Cluster, the slot while that
// node is unknown, otherwise 0. One write cannot serve names with different routes.
func (s *Store) Route(name string) uint32 {
	s.nodes.want()
	return s.nodes.known().route(s.Slot(name))
}

// EvalAbout runs a script about one name, and about one lease ID if the script has keys of it.
func (s *Store) EvalAbout(ctx context.Context, script *lua.Script, name string, id lockinfo.LeaseID, args ...string) (any, error) {
	if err := s.Enter(ctx, name); err != nil {
		return nil, err
	}
	return s.Eval(ctx, script, s.keys.Of(script.Keys, name, id), args)
}

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

// Granted counts leases that were granted, and Ended counts one that was released. While there are
// leases, the store listens for breaks.
func (s *Store) Granted(n int) { s.inbox.losses.Granted(n, s.listen) }
func (s *Store) Ended()        { s.inbox.losses.Ended() }

// Eval runs a script about one name and returns its reply.
func (s *Store) Eval(ctx context.Context, script *lua.Script, keys, args []string) (any, error) {
	s.asking.Add(1)
	defer s.asking.Add(-1)
	reply, done, err := s.evalDirect(ctx, script, keys, args)
	if !done {
		return s.evalShared(ctx, script, keys, args)
	}
	r := s.repeat(ctx, script, Call{Keys: keys, Args: args}, Reply{reply, err})
	return r.Value, r.Err
}

// evalShared runs a script on the shared connection. INVARIANT I9: renewals use only that. If all
// connections fall silent at once, a renewal that tried a lane first would spend the time to detect
// it twice, and the lease might expire meanwhile.
func (s *Store) evalShared(ctx context.Context, script *lua.Script, keys, args []string) (any, error) {
	reply, err := s.ask(ctx, func() (any, error) { return eval(ctx, s.conn, script, keys, args) })
	r := s.repeat(ctx, script, Call{Keys: keys, Args: args}, Reply{reply, err})
	return r.Value, r.Err
}

// repeat makes a call again if its connection was given up and a repeat of the script has the same
// reply as the first call.
func (s *Store) repeat(ctx context.Context, script *lua.Script, c Call, first Reply) Reply {
	if errors.Is(first.Err, ErrGivenUp) && script.Repeats && ctx.Err() == nil {
		again, failed := s.ask(ctx, func() (any, error) { return eval(ctx, s.conn, script, c.Keys, c.Args) })
		if failed == nil {
			return Reply{Value: again} // otherwise the outcome of the first call stays unknown
		}
	}
	return first
}

// evalDirect makes the call on the caller's goroutine. It reports false if the call still has to be
// made.
func (s *Store) evalDirect(ctx context.Context, script *lua.Script, keys, args []string) (reply any, done bool, err error) {
	lane := s.lane(ctx)
	if lane == nil {
		return nil, false, nil
	}
	_, sha := script.Source()
	reply, sent, err := lane.DirectSHA(ctx, sha, keys, args)
	done, err = s.madeDirect(ctx, sent, err)
	return reply, done, err
}

// lane reserves a lane for a call if few requests are in progress, and returns nil otherwise: many
// requests are faster if they share calls.
func (s *Store) lane(ctx context.Context) Lane {
	if s.direct == nil || s.asking.Load() > MostDirect {
		return nil
	}
	return s.direct.Begin(ctx)
}

// madeDirect reports whether a call on a lane was made, and returns its error. If ctx or the
// engine has ended, that is the error.
func (s *Store) madeDirect(ctx context.Context, sent bool, err error) (bool, error) {
	switch {
	case !sent || isUnknown(err):
		return false, nil
	case err == nil || ServerSays(err) != "":
		return true, err
	case s.life.Err() != nil:
		return true, errClosing
	case ctx.Err() != nil:
		return true, noAnswer(ctx)
	}
	return true, err
}

// Do sends a command over on. If on is nil, the command may go to any server that serves its keys.
func (s *Store) Do(ctx context.Context, on Sender, c Command) (any, error) {
	if on == nil {
		on = s.conn
	}
	return s.ask(ctx, func() (any, error) { return on.Do(ctx, c) })
}

// eval sends a script by its hash. If the server does not know the script, it has run nothing, and
// eval sends the text.
func eval(ctx context.Context, on Sender, script *lua.Script, keys, args []string) (any, error) {
	text, sha := script.Source()
	reply, err := on.EvalSHA(ctx, sha, keys, args)
	if isUnknown(err) {
		return evalText(ctx, on, text, keys, args)
	}
	return reply, err
}

// evalInts is eval for a script whose reply is a list of integers. It appends them to a list.
func evalInts(ctx context.Context, on Conn, script *lua.Script, keys, args []string, to []int64) ([]int64, error) {
	text, sha := script.Source()
	all, err := on.EvalInts(ctx, sha, keys, args, to)
	if !isUnknown(err) {
		return all, err
	}
	reply, err := evalText(ctx, on, text, keys, args)
	if err != nil {
		return to, err
	}
	return appendInts(to, reply)
}

// appendInts appends a reply of integers.
func appendInts(to []int64, reply any) ([]int64, error) {
	items, _ := reply.([]any)
	for _, item := range items {
		n, ok := item.(int64)
		if !ok {
			return to, form.Malformed("a script", reply)
		}
		to = append(to, n)
	}
	return to, nil
}

// isUnknown reports whether the server does not know a script.
func isUnknown(err error) bool {
	return err != nil && strings.HasPrefix(ServerSays(err), "NOSCRIPT")
}

// isElsewhere reports whether a node has redirected a call to another node.
func isElsewhere(err error) bool {
	code, _, _ := strings.Cut(ServerSays(err), " ")
	return code == "MOVED" || code == "ASK"
}

func evalText(ctx context.Context, on Sender, text string, keys, args []string) (any, error) {
	words := []string{"EVAL", text, strconv.Itoa(len(keys))}
	return on.Do(ctx, Command{Words: words, Keys: keys, Args: args})
}

// errClosing means that the engine was closed before the server replied.
var errClosing = errors.New("the engine was closed before the server answered")

// A question is a request whose caller may leave before the reply.
type question struct {
	request func() (any, error)
	answers chan answer // has room for the one answer
}

// An answer is the outcome of a request.
type answer struct {
	reply any
	err   error
}

func (q *question) do() {
	reply, err := q.request()
	q.answers <- answer{reply, err}
}

// ask returns what request does, or an error as soon as ctx or the engine ends;
// the outcome is then unknown.
//
// The request runs on another goroutine. A client may ignore ctx while it waits for a connection
// that another call opens, or while its queue to a silent server is full.
func (s *Store) ask(ctx context.Context, request func() (any, error)) (any, error) {
	q := &question{request, make(chan answer, 1)}
	s.workers.run(q)
	var cause error
	select {
	case a := <-q.answers:
		return a.reply, a.err
	case <-ctx.Done():
		cause = noAnswer(ctx)
	case <-s.life.Done():
		cause = errClosing
	}
	select {
	case a := <-q.answers: // if both are ready, prefer the reply
		return a.reply, a.err
	default:
		return nil, cause
	}
}

// noAnswer returns the error of a request whose ctx ended before the reply.
func noAnswer(ctx context.Context) error {
	return fmt.Errorf("no answer from the server: %w", ctx.Err())
}
