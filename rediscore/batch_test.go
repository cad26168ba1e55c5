package rediscore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A depot is a store of plain releases that answers on demand: its n-th call waits for n answers.
// The reply for the name k is k.
type depot struct {
	parrot
	cluster bool

	mu    sync.Mutex
	calls []*call
}

// A call is a call in flight.
type call struct {
	names []string
	end   chan error // its result
}

func (d *depot) EvalInts(_ context.Context, _ string, keys, _ []string, to []int64) ([]int64, error) {
	c := &call{end: make(chan error)}
	for i := 0; i < len(keys); i += 2 { // LOCK, DETAIL
		c.names = append(c.names, keys[i])
		n, _ := strconv.ParseInt(keys[i][strings.LastIndex(keys[i], "/")+1:], 10, 64)
		to = append(to, n)
	}
	d.mu.Lock()
	d.calls = append(d.calls, c)
	d.mu.Unlock()
	return to, <-c.end
}

func (d *depot) Nodes() map[string]Conn                   { return nil }
func (d *depot) Do(context.Context, Command) (any, error) { return nil, errors.New("what?") }

func (d *depot) Mode() Mode {
	if d.cluster {
		return InCluster
	}
	return OneServer
}

// seen returns the calls that have arrived.
func (d *depot) seen() []*call {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

// A passenger is the caller of one request.
type passenger struct {
	cancel context.CancelFunc
	done   chan struct{}
	n      int64
	err    error
}

func (p *passenger) left() bool {
	synctest.Wait()
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// board starts a request for each name, in order.
func board(t *testing.T, f *batcher, names ...string) (all []*passenger) {
	t.Helper()
	for _, name := range names {
		ctx, cancel := context.WithCancel(t.Context())
		p := &passenger{cancel: cancel, done: make(chan struct{})}
		all = append(all, p)
		go func() {
			defer close(p.done)
			p.n, p.err = f.do(ctx, f.newRequest(name, lockinfo.NewLeaseID()))
		}()
		synctest.Wait()
	}
	return all
}

// numbered returns names.
func numbered(prefix string, from, n int) (names []string) {
	for i := range n {
		names = append(names, prefix+"/"+strconv.Itoa(from+i))
	}
	return names
}

// inDepot runs a test of the batcher for plain releases.
func inDepot(t *testing.T, cluster bool, test func(*testing.T, *depot, *engine, *batcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &depot{cluster: cluster}
		e := mustNew(t, d)
		test(t, d, e.hidden, e.plain.releases)
		for _, c := range d.seen() {
			select {
			case c.end <- errors.New("the end"):
			default:
			}
		}
		_ = e.Close()
		synctest.Wait()
		if n := goroutines(); n != 0 {
			t.Errorf("%d goroutines after the end", n)
		}
	})
}

// A request never waits for others. Requests that arrive while enough calls are in flight join the
// next call in their order, and each gets its own answer.
func TestBatch(t *testing.T) {
	inDepot(t, false, func(t *testing.T, d *depot, _ *engine, f *batcher) {
		names := numbered("n", 1, mostCalls+2*mostRequests+1)
		all := board(t, f, names...)
		if n := len(d.seen()); n != mostCalls {
			t.Fatalf("%d calls are under way, want %d", n, mostCalls)
		}
		var order []string
		for i := 0; i < len(d.seen()); i++ {
			c := d.seen()[i]
			if want := min(mostRequests, len(names)-len(order)); i >= mostCalls && len(c.names) != want || i < mostCalls && len(c.names) != 1 {
				t.Errorf("call %d is about %d names", i, len(c.names))
			}
			order = append(order, c.names...)
			c.end <- nil
		}
		if !slices.Equal(order, names) {
			t.Errorf("sent in the order %q", order)
		}
		for i, p := range all {
			if !p.left() || p.err != nil || p.n != int64(i+1) {
				t.Errorf("passenger %d: %v, %d, %v", i+1, p.left(), p.n, p.err)
			}
		}
		if lone := board(t, f, "m/7"); len(d.seen()[len(d.seen())-1].names) != 1 || lone[0].left() {
			t.Error("a lone request waits, or is answered by nobody")
		}
	})
}

// A request whose caller gives up is never sent if it is pending, and has an unknown outcome if it
// is in flight. The others are answered as usual. INVARIANT I5.
func TestBatchOfThoseWhoLeave(t *testing.T) {
	inDepot(t, false, func(t *testing.T, d *depot, _ *engine, f *batcher) {
		first := board(t, f, numbered("n", 1, mostCalls)...)
		rest := board(t, f, numbered("n", mostCalls+1, 5)...)
		for _, p := range []*passenger{first[0], rest[0], rest[2], rest[4]} { // the first, one in the middle, the last
			p.cancel()
			if !p.left() || !errors.Is(p.err, context.Canceled) || driver.Definite(p.err) {
				t.Errorf("a request whose caller has left: %v", p.err)
			}
		}
		for _, c := range d.seen() {
			c.end <- nil
		}
		again := d.seen()[mostCalls:]
		if len(again) != 1 || !slices.Equal(again[0].names, []string{fmt.Sprint("n/", mostCalls+2), fmt.Sprint("n/", mostCalls+4)}) {
			t.Errorf("sent later: %v, want those who are still there", again)
		}
		again[0].end <- nil
		for i, p := range []*passenger{first[1], rest[1], rest[3]} {
			if want := []int64{2, mostCalls + 2, mostCalls + 4}[i]; !p.left() || p.err != nil || p.n != want {
				t.Errorf("%d, %v; want %d", p.n, p.err, want)
			}
		}
	})
}

// A request ends at the limit of its own context or with its caller's context, whichever comes
// first. A request that was answered in time leaves no timer that ends the next.
func TestBatchKeepsLimits(t *testing.T) {
	inDepot(t, false, func(t *testing.T, d *depot, _ *engine, f *batcher) {
		caller, leave := context.WithTimeout(t.Context(), 3*time.Second)
		defer leave()
		for _, c := range []struct {
			limit, answered, late time.Duration
			err                   error
		}{
			{limit: time.Second, answered: 900 * time.Millisecond}, {limit: time.Second, answered: 200 * time.Millisecond},
			{limit: time.Second, late: time.Second, err: ask.ErrNoAnswer},
			{limit: time.Minute, late: 900 * time.Millisecond, err: context.DeadlineExceeded}, // later than the caller's limit
		} {
			ctx, stop := ask.Limit(caller, c.limit)
			if c.err == ask.ErrNoAnswer {
				ctx.Done() // gives the context a timer of its own, which fires at the same time
			}
			n, began := len(d.seen()), time.Now()
			if c.late == 0 {
				time.AfterFunc(c.answered, func() { d.seen()[n].end <- nil })
			}
			_, err := f.do(ctx, f.newRequest("n/1", lockinfo.NewLeaseID())) // usually the request answered before
			if took := time.Since(began); took != c.answered+c.late || !errors.Is(err, c.err) {
				t.Errorf("%+v: %v after %s", c, err, took)
			}
			stop()
		}
	})
}

// Close ends all waiting requests at once, and sends no more.
func TestBatchAtClose(t *testing.T) {
	inDepot(t, false, func(t *testing.T, d *depot, e *engine, f *batcher) {
		all := board(t, f, numbered("n", 1, mostCalls+3)...)
		_ = e.Close()
		for i, p := range all {
			if !p.left() || !errors.Is(p.err, errClosing) {
				t.Errorf("passenger %d: %v", i, p.err)
			}
		}
		for _, c := range d.seen() {
			c.end <- errors.New("closed")
		}
		if n := len(d.seen()); n != mostCalls {
			t.Errorf("%d calls, of which %d came after Close", n, n-mostCalls)
		}
	})
}

// An error of a call is returned to each of its requests and to no other. The same holds for a
// reply with the wrong number of results.
func TestBatchThatFails(t *testing.T) {
	inDepot(t, false, func(t *testing.T, d *depot, _ *engine, f *batcher) {
		lost := errors.New("lost")
		all := board(t, f, numbered("n", 1, mostCalls+2)...)
		d.seen()[1].end <- nil
		d.seen()[mostCalls].end <- lost
		for i, c := range d.seen()[:mostCalls] {
			if i != 1 {
				c.end <- nil
			}
		}
		for i, p := range all {
			if want := map[bool]error{true: lost}[i >= mostCalls]; !p.left() || !errors.Is(p.err, want) {
				t.Errorf("passenger %d: %v, want %v", i, p.err, want)
			}
		}
	})
	for _, reply := range [][]int64{nil, {1, 1}} {
		e := mustNew(t, shortChanged{ints: reply})
		err := e.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: lockinfo.NewLeaseID()})
		if err == nil {
			t.Errorf("the reply %v passes for an answer", reply)
		}
		drivertest.WantIs(t, fmt.Sprint(reply), err, nil)
		_ = e.Close()
	}
}

// A shortChanged store replies with a list of any length.
type shortChanged struct {
	parrot
	ints []int64
}

func (s shortChanged) EvalInts(context.Context, string, []string, []string, []int64) ([]int64, error) {
	return s.ints, nil
}

// INVARIANT I9: when calls hang, another call with all pending requests starts after a while. When
// they return, there are no more calls than before.
func TestBatchBesideOneThatHangs(t *testing.T) {
	inDepot(t, false, func(t *testing.T, d *depot, _ *engine, f *batcher) {
		board(t, f, numbered("n", 1, mostCalls+1)...)
		time.Sleep(slowCall - time.Microsecond)
		late := board(t, f, "n/20")
		if n := len(d.seen()); n != mostCalls {
			t.Fatalf("%d calls before %s", n, slowCall)
		}
		time.Sleep(time.Microsecond) // no other request arrives
		calls := d.seen()
		if len(calls) != mostCalls+1 || !slices.Equal(calls[mostCalls].names, []string{fmt.Sprint("n/", mostCalls+1), "n/20"}) {
			t.Fatalf("%d calls, want one more, with all who are pending", len(calls))
		}
		board(t, f, numbered("n", 40, 3)...)
		calls[mostCalls].end <- nil
		if !late[0].left() || late[0].n != 20 {
			t.Errorf("beside what hangs: %d, %v", late[0].n, late[0].err)
		}
		if calls = d.seen(); len(calls) != mostCalls+2 || len(calls[mostCalls+1].names) != 3 {
			t.Fatalf("%d calls: what came later waits for those that hang", len(calls))
		}
		board(t, f, numbered("n", 50, 3)...)
		for _, c := range calls[:mostCalls] {
			c.end <- nil
		}
		board(t, f, numbered("n", 60, mostCalls)...)
		if under := len(d.seen()) - len(calls) + 1; under != mostCalls {
			t.Errorf("%d calls are under way when those that hung are back, want %d", under, mostCalls)
		}
	})
}

// INVARIANT I9: in a Redis Cluster a slot that hangs delays no other slot, and slots are not
// remembered.
func TestBatchesBySlot(t *testing.T) {
	inDepot(t, true, func(t *testing.T, d *depot, _ *engine, f *batcher) {
		board(t, f, numbered("{a}", 1, mostCalls+2)...)
		all := board(t, f, numbered("{b}", 1, mostCalls)...)
		for _, c := range d.seen()[mostCalls:] {
			c.end <- nil
		}
		for i, p := range all {
			if !p.left() || p.err != nil || p.n != int64(i+1) {
				t.Fatalf("beside a slot that hangs: %d, %v; want %d", p.n, p.err, i+1)
			}
		}
		if n := len(f.queues); n != 1 {
			t.Errorf("%d slots are remembered, want that which hangs", n)
		}
		for _, c := range d.seen()[:mostCalls] {
			c.end <- nil
		}
		d.seen()[2*mostCalls].end <- nil
		if synctest.Wait(); len(f.queues) != 0 {
			t.Errorf("%d slots are remembered when all is done", len(f.queues))
		}
	})
}

// No caller gets another's answer, whichever callers give up, and whenever.
func TestBatchInDisorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mustNew(t, echo{})
		defer func() {
			time.Sleep(time.Millisecond) // the last answers
			_ = e.Close()
		}()
		var all sync.WaitGroup
		var mu sync.Mutex
		answered, abandoned := 0, 0
		for w := range 64 {
			all.Go(func() {
				for i := range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), rand.N(2*time.Millisecond))
					want := int64(1000*w + i)
					f := e.plain.releases
					n, err := f.do(ctx, f.newRequest("n/"+strconv.FormatInt(want, 10), lockinfo.NewLeaseID()))
					cancel()
					mu.Lock()
					switch {
					case err == nil && n == want:
						answered++
					case errors.Is(err, context.DeadlineExceeded):
						abandoned++
					default:
						t.Errorf("%d, %v; want %d", n, err, want)
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if answered < 1000 || abandoned < 1000 {
			t.Errorf("%d answered, %d abandoned: the test proves little", answered, abandoned)
		}
	})
}

// An echo is a depot that answers after up to a millisecond.
type echo struct{ parrot }

func (echo) Mode() Mode { return OneServer }

func (echo) EvalInts(_ context.Context, _ string, keys, _ []string, to []int64) ([]int64, error) {
	time.Sleep(rand.N(time.Millisecond))
	for i := 0; i < len(keys); i += 2 {
		n, _ := strconv.ParseInt(keys[i][strings.LastIndex(keys[i], "/")+1:], 10, 64)
		to = append(to, n)
	}
	return to, nil
}
