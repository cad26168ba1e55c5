package redislock

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// A gate is a connection that delays plain requests until it is opened. Requests that arrive
// meanwhile share a call.
type gate struct {
	rediscore.Conn
	around *Engine // on the same connection, without the gate
	open   chan struct{}

	mu    sync.Mutex
	calls [][]string // their keys
	full  int        // full requests about one name
	lose  int        // drop the reply to the next call with this many names of ours
	cause error      // the error for that
	drop  bool       // drop the request, too
}

func (g *gate) EvalInts(ctx context.Context, sha string, keys, args []string, to []int64) ([]int64, error) {
	g.mu.Lock()
	g.calls = append(g.calls, slices.Clone(keys))
	open := g.open
	g.mu.Unlock()
	<-open
	g.mu.Lock()
	lose := g.lose > 0 && ours(keys) == g.lose // and the few others in the call
	if lose {
		g.lose = 0
	}
	g.mu.Unlock()
	if lose && g.drop {
		return to, g.cause
	}
	all, err := g.Conn.EvalInts(ctx, sha, keys, args, to)
	if lose {
		return to, g.cause
	}
	return all, err
}

func (g *gate) EvalSHA(ctx context.Context, sha string, keys, args []string) (any, error) {
	if strings.HasPrefix(keys[0], "n/") {
		g.mu.Lock()
		g.full++
		g.mu.Unlock()
	}
	return g.Conn.EvalSHA(ctx, sha, keys, args)
}

func (g *gate) inFull() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.full
}

// behindGate returns an engine whose plain requests pass through a gate.
func behindGate(t *testing.T, server *testsvc.Server) (*Engine, *gate) {
	t.Helper()
	around := open(t, server.URL)
	g := &gate{Conn: around.Store().Conn(), around: around, open: make(chan struct{})}
	close(g.open)
	e := engineOnConn(t, g)
	t.Cleanup(func() { _ = e.Close() })
	return e, g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open, g.calls = make(chan struct{}), nil
}

// carries reports whether a call about a name has reached the gate.
func (g *gate) carries(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.calls, func(keys []string) bool { return slices.Contains(keys, name) })
}

// seen returns how many calls have reached the gate.
func (g *gate) seen() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.calls)
}

// waiting returns how many plain requests are in flight. The tests of this file run alone.
func waiting() (n int) {
	stacks := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		head, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(head, "[select") && strings.Contains(stack, "rediscore.(*batcher).do(") {
			n++
		}
	}
	return n
}

// together sends requests in one call, and returns when they are answered: before them, the
// greatest number of calls is in flight, or pending. Their names begin with n/. It reports whether
// they shared a call: if the machine pauses, a call seems to hang, and another call starts.
func (g *gate) together(t *testing.T, other func(name string), requests ...func()) bool {
	t.Helper()
	g.shut()
	var answered sync.WaitGroup
	ask := func(requests []func()) {
		before := waiting()
		for _, request := range requests {
			answered.Go(request)
		}
		drivertest.Eventually(t, "all requests wait", func() bool { return waiting() == before+len(requests) })
	}
	others := make([]func(), 8)
	for i := range others {
		others[i] = func() { other(fmt.Sprint("before/", i)) }
	}
	ask(others)
	ask(requests)
	close(g.open)
	answered.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.calls, func(keys []string) bool { return ours(keys) == len(requests) })
}

// ours returns how many of the keys are locks whose name begins with n/.
func ours(keys []string) (n int) {
	for _, key := range keys {
		if strings.HasPrefix(key, "n/") {
			n++
		}
	}
	return n
}

// untilTogether repeats a test, on an empty server and with another engine, until its requests
// share a call.
func untilTogether(t *testing.T, test func(*testing.T, rueidis.Client, *Engine, *gate) bool) {
	t.Helper()
	server := testsvc.Redis(t)
	admin := plain(t, server)
	for range 50 {
		do(t, admin, "FLUSHALL")
		e, g := behindGate(t, server)
		if test(t, admin, e, g) || t.Failed() {
			return
		}
	}
	t.Error("the requests never travel together")
}

// acquiring and releasing are requests for together.
func acquiring(e *Engine) func(string) {
	return func(name string) {
		_, _ = e.Acquire(context.Background(), drivertest.Request(name, time.Minute))
	}
}

func releasing(e *Engine) func(string)  { return ending(e, false) }
func cancelling(e *Engine) func(string) { return ending(e, true) }

func ending(e *Engine, cancel bool) func(string) {
	return func(name string) {
		_ = e.Release(context.Background(), driver.ReleaseRequest{Name: name, LeaseID: lockinfo.NewLeaseID(), Cancel: cancel})
	}
}
