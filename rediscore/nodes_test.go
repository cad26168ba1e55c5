package rediscore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A district is a Redis Cluster of two nodes, each with half of the slots, and a client of it. Its
// reply to a request about the name n/k is k.
type district struct {
	parrot
	nodes map[string]Conn
	each  map[string]int // keys of one request, by script

	mu     sync.Mutex // guards the rest
	slots  []any      // the nodes' list of the slots
	silent bool       // the nodes do not return the list
	looks  int
	alone  []string      // names in calls of the client
	hang   chan struct{} // unless nil, those calls wait for it
	errs   map[string]error
}

// A house is a node.
type house struct {
	parrot
	of *district

	mu     sync.Mutex // guards the rest
	writes [][]Call
	hold   chan struct{}    // unless nil, a write waits for it
	errs   map[string]error // by name, instead of the answer
}

func newDistrict() *district {
	d := &district{each: map[string]int{}}
	d.nodes = map[string]Conn{"a:1": &house{of: d}, "b:2": &house{of: d}}
	d.serve("a", 1, "b", 2)
	return d
}

// serve sets the nodes of the lower and the upper half of the slots.
func (d *district) serve(lower string, lowerPort int64, upper string, upperPort int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slots = []any{ // unordered, with a replica
		[]any{int64(8192), int64(16383), []any{upper, upperPort, "id"}},
		[]any{int64(0), int64(8191), []any{lower, lowerPort, "id"}, []any{"c", int64(3), "id"}},
	}
}

func (d *district) node(addr string) *house { return d.nodes[addr].(*house) }

func (d *district) Mode() Mode             { return InCluster }
func (d *district) Nodes() map[string]Conn { return maps.Clone(d.nodes) }

func (d *district) answer(sha string, keys []string) (ints []any) {
	for i := 0; i < len(keys); i += max(d.each[sha], 1) {
		n, _ := strconv.ParseInt(keys[i][strings.LastIndex(keys[i], "/")+1:], 10, 64)
		ints = append(ints, n)
	}
	return ints
}

func (d *district) EvalSHA(_ context.Context, sha string, keys, _ []string) (any, error) {
	d.mu.Lock()
	d.alone = append(d.alone, keys[0])
	hang, err := d.hang, d.errs[keys[0]]
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return d.answer(sha, keys), err
}

func (d *district) EvalInts(ctx context.Context, sha string, keys, args []string, to []int64) ([]int64, error) {
	all, _ := d.EvalSHA(ctx, sha, keys, args)
	return appendInts(to, all)
}

// left returns the names in calls of the client since the last call of left.
func (d *district) left() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	names := d.alone
	d.alone = nil
	slices.Sort(names)
	return names
}

func (d *district) Do(ctx context.Context, c Command) (any, error) {
	d.mu.Lock()
	d.looks++
	slots, silent := d.slots, d.silent
	d.mu.Unlock()
	if silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if strings.Join(c.Words, " ") != "CLUSTER SLOTS" {
		return nil, errors.New("what?")
	}
	return slots, nil
}

func (h *house) EvalEach(_ context.Context, calls []Call) []Reply {
	var copies []Call // the lists belong to the caller
	for _, c := range calls {
		copies = append(copies, Call{c.slot, c.SHA, slices.Clone(c.Keys), slices.Clone(c.Args)})
	}
	h.mu.Lock()
	h.writes = append(h.writes, copies)
	hold, errs := h.hold, h.errs
	h.mu.Unlock()
	if hold != nil {
		<-hold
	}
	replies := make([]Reply, len(calls))
	for i, c := range copies {
		if replies[i].Err = errs[c.Keys[0]]; replies[i].Err == nil {
			replies[i].Value = h.of.answer(c.SHA, c.Keys)
		}
	}
	return replies
}

// written returns the names of each call of each write since the last call of written.
func (h *house) written() (writes [][]string) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, calls := range h.writes {
		var names []string
		for _, c := range calls {
			names = append(names, c.Keys[0])
		}
		slices.Sort(names)
		writes = append(writes, names)
	}
	h.writes = nil
	return writes
}

// inDistrict runs a test of an engine that knows the nodes already. low are names in different
// slots of the first node, and high names in slots of the second.
func inDistrict(t *testing.T, test func(t *testing.T, d *district, e *engine, low, high []string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDistrict()
		e := mustNew(t, d).hidden
		for _, f := range []*batcher{e.plain.acquires, e.plain.releases, e.plain.cancels} {
			_, sha := f.script.Source()
			d.each[sha] = len(f.script.EachKeys)
		}
		_, sha := e.scripts.PlainRenew.Source()
		d.each[sha] = len(e.scripts.PlainRenew.EachKeys)
		var low, high []string
		for i := 1; len(low) < 8 || len(high) < 8; i++ {
			name := fmt.Sprint("n/", i)
			if e.store.Slot(name) < 8192 {
				low = append(low, name)
			} else {
				high = append(high, name)
			}
		}
		_ = e.Route("n") // requests the list of the nodes
		synctest.Wait()
		test(t, d, e, low, high)
		_ = e.Close()
		synctest.Wait()
		if n := goroutines(); n != 0 {
			t.Errorf("%d goroutines after the end", n)
		}
	})
}

// wantAnswers checks that each caller got its own answer.
func wantAnswers(t *testing.T, all []*passenger, names []string) {
	t.Helper()
	for i, p := range all {
		if want := names[i][strings.LastIndex(names[i], "/")+1:]; !p.left() || p.err != nil || fmt.Sprint(p.n) != want {
			t.Errorf("%s: %v, %d, %v", names[i], p.left(), p.n, p.err)
		}
	}
}

// TestNodeTakesOneWrite checks that the pending requests for a node go in one write, whatever their
// slots and scripts, and that each gets its own answer. INVARIANT I9: a node that hangs delays no
// other node.
func TestNodeTakesOneWrite(t *testing.T) {
	inDistrict(t, func(t *testing.T, d *district, e *engine, low, high []string) {
		node := d.node("a:1")
		node.hold = make(chan struct{})
		first := board(t, e.plain.releases, low[:mostCalls]...)
		rest := board(t, e.plain.releases, low[mostCalls:6]...)
		cancels := board(t, e.plain.cancels, append(low[6:8:8], low[mostCalls])...)
		if got := node.written(); !slices.EqualFunc(got, low[:mostCalls], func(w []string, name string) bool { return len(w) == 1 && w[0] == name }) {
			t.Fatalf("writes %q, want one for each of %q", got, low[:mostCalls])
		}
		wantAnswers(t, board(t, e.plain.releases, high[0]), high)
		close(node.hold)
		want := slices.Sorted(slices.Values(append(low[mostCalls:8:8], low[mostCalls]))) // two scripts for one slot
		if got := node.written(); len(got) != 1 || !slices.Equal(got[0], want) {
			t.Errorf("writes %q, want one with %q", got, want)
		}
		wantAnswers(t, slices.Concat(first, rest), low)
		wantAnswers(t, cancels, append(low[6:8:8], low[mostCalls]))
		if got := d.left(); len(e.plain.releases.queues) != 0 || len(got) != 0 {
			t.Errorf("%d queues are left, and the client was asked about %q", len(e.plain.releases.queues), got)
		}
	})
}

// TestNodeAnswersEach checks that each request of a write has its own answer. A request that
// another node must answer, or whose script the node does not know, is sent again alone, and delays
// none of the others. INVARIANT I9.
func TestNodeAnswersEach(t *testing.T) {
	inDistrict(t, func(t *testing.T, d *district, e *engine, low, _ []string) {
		lost := errors.New("lost")
		node := d.node("a:1")
		node.hold, d.hang = make(chan struct{}), make(chan struct{})
		node.errs = map[string]error{
			low[0]: ReplyError("MOVED 1 b:2"), low[1]: ReplyError("MOVED 1 b:2"),
			low[2]: ReplyError("MOVED 1 b:2"), low[3]: ReplyError("ASK 1 b:2"), low[4]: ReplyError("NOSCRIPT what?"),
			low[5]: ReplyError("CLUSTERDOWN no"), low[6]: lost,
		}
		all := board(t, e.plain.releases, low...)
		close(node.hold)
		if got, want := d.left(), slices.Sorted(slices.Values(low[:5])); !slices.Equal(got, want) {
			t.Errorf("asked alone: %q, want %q", got, want)
		}
		wantAnswers(t, all[7:8], low[7:])
		if p := all[5]; !p.left() || !errors.Is(p.err, driver.ErrUnavailable) {
			t.Errorf("where the cluster is down: %v", p.err)
		}
		if p := all[6]; !p.left() || !errors.Is(p.err, lost) {
			t.Errorf("without a reply: %v", p.err)
		}
		for i, p := range all[:5] {
			if p.left() {
				t.Errorf("%s is answered by the wrong node: %d, %v", low[i], p.n, p.err)
			}
		}
		wantAnswers(t, board(t, e.plain.releases, low[7]), low[7:]) // a request sent alone delays no other
		close(d.hang)
		wantAnswers(t, all[:5], low)
	})
}

// TestNodeTakesRenewals checks the same for renewals. A renewal whose connection failed is
// repeated, and its outcome is unknown if the repeat fails. INVARIANT I6.
func TestNodeTakesRenewals(t *testing.T) {
	inDistrict(t, func(t *testing.T, d *district, e *engine, low, high []string) {
		gone := fmt.Errorf("the network: %w", ErrGivenUp)
		down := ReplyError("CLUSTERDOWN no")
		d.node("a:1").errs = map[string]error{low[0]: ReplyError("MOVED 1 b:2"), low[1]: gone, low[2]: gone, low[3]: down}
		d.errs = map[string]error{low[2]: down}
		names := slices.Concat(low[:5], high[:3])
		reqs := make([]driver.ExtendRequest, len(names))
		var which []int
		for i, name := range names {
			reqs[i] = driver.ExtendRequest{Name: name, LeaseID: lockinfo.NewLeaseID(), TTL: time.Minute}
			which = append(which, i)
		}
		items, errs := make([]any, len(names)), make([]error, len(names))
		b := e.extendBatch(e.scripts.PlainRenew, reqs, which, e.memory)
		b.Answer = func(i int, item any, err error) { items[i], errs[i] = item, err }
		e.store.EvalEach(t.Context(), len(reqs), b)
		for i, name := range names {
			switch want := map[int]error{2: gone, 3: down}[i]; {
			case want != nil && !errors.Is(errs[i], want):
				t.Errorf("%s: %v, want %v", name, errs[i], want)
			case want == nil && (errs[i] != nil || fmt.Sprint("n/", items[i]) != name):
				t.Errorf("%s: %v, %v", name, items[i], errs[i])
			}
		}
		first, second := d.node("a:1").written(), d.node("b:2").written()
		if len(first) != 1 || len(first[0]) != 5 || len(second) != 1 || len(second[0]) != 3 {
			t.Errorf("writes %q and %q, want one to each node", first, second)
		}
		if got, want := d.left(), slices.Sorted(slices.Values(low[:3])); !slices.Equal(got, want) {
			t.Errorf("asked alone: %q, want %q", got, want)
		}
	})
}

// TestNodesAreFollowed checks that the names of a node have one route while the nodes are known.
// The engine requests the list of the nodes once in lookPause, and only while it sends requests.
func TestNodesAreFollowed(t *testing.T) {
	inDistrict(t, func(t *testing.T, d *district, e *engine, low, high []string) {
		silent := func(is bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.silent = is
		}
		looks := func() int {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.looks
		}
		routes := func(want int, what string) (upper uint32) {
			t.Helper()
			_ = e.Route(high[0])
			synctest.Wait()
			all := map[uint32]bool{}
			for _, name := range slices.Concat(low, high) {
				all[e.Route(name)] = true
			}
			if len(all) != want {
				t.Errorf("%s: %d routes, want %d", what, len(all), want)
			}
			return e.Route(high[0])
		}
		before := routes(2, "two nodes")
		both := []driver.AcquireRequest{drivertest.Request(low[0], time.Minute), drivertest.Request(low[1], time.Minute)}
		if _, err := e.AcquireAll(t.Context(), both); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("names of two slots of a node in one step: %v", err)
		}
		d.serve("b", 2, "b", 2)
		if time.Sleep(lookPause - 1); looks() != 1 {
			t.Errorf("%d looks before the pause has passed", looks())
		}
		time.Sleep(time.Nanosecond)
		if after := routes(1, "one node has all slots"); after != before {
			t.Errorf("the route to a node was %d and is %d", before, after)
		}
		silent(true)
		time.Sleep(lookAge - 1)
		routes(1, "what was said is not old")
		time.Sleep(time.Nanosecond)
		routes(len(low)+len(high), "nobody says who has which slots")
		if n := looks(); n != 3 {
			t.Errorf("%d looks, want 3: one of a node that is silent lasts for the pause", n)
		}
		silent(false)
		d.slots = nil // such as a refusal
		n := looks()
		time.Sleep(lookPause)
		for range 3 {
			routes(len(low)+len(high), "nobody knows who has which slots")
		}
		if looks() != n+1 {
			t.Errorf("%d looks at once, want 1", looks()-n)
		}
		d.serve("b", 2, "b", 2)
		time.Sleep(2 * lookPause)
		routes(1, "the nodes are back")
		n = looks()
		if time.Sleep(time.Hour); looks() != n {
			t.Errorf("%d looks while nothing was sent", looks()-n)
		}
		routes(1, "an hour later")
	})
}

func TestReadSlots(t *testing.T) {
	t.Parallel()
	known := map[string]Conn{"[::1]:7": &house{}, "h:7": parrot{}}
	slots := func(host any, port int64) any {
		return []any{[]any{int64(1), int64(2), []any{host, port, "id", []any{}}}}
	}
	for _, c := range []struct {
		reply any
		want  bool
	}{
		{nil, false},
		{"OK", false},
		{[]any{[]any{int64(1), int64(2)}, "x", nil, []any{"1", "2", "3"}, []any{int64(1), int64(2), []any{"::1"}}}, false},
		{slots("::1", 7), true},
		{slots("::1", 8), false},
		{slots(nil, 7), false},
		{slots("?", 7), false},
		{slots("h", 7), false}, // this node takes one call at a time
	} {
		var l look
		if some := l.read(c.reply, known); some != c.want || (l.node[1] != nil) != c.want || l.node[0] != nil || l.node[3] != nil {
			t.Errorf("%v: %v, want %v", c.reply, some, c.want)
		}
	}
}
