package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// laneOf returns the first lane of an engine, which a single caller uses.
func laneOf(e *Engine) *lane { return e.Store().Conn().(*conn).lanes[0] }

func (l *lane) reserve(ctx context.Context) bool {
	reserved, _ := l.begin(ctx)
	return reserved
}

func (l *lane) isOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.opening && time.Since(l.answered) < laneAge/2
}

func (l *lane) inUse() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.call != nil
}

// limited returns a context with a time limit, as all requests of a client have.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// openLane acquires and releases until the lane is open.
func openLane(t *testing.T, e *Engine) {
	t.Helper()
	ctx := limited(t)
	drivertest.Eventually(t, "the lane is open", func() bool {
		req := drivertest.Request("warm", time.Minute)
		if _, err := e.Acquire(ctx, req); err == nil {
			_ = e.Release(ctx, driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID})
		}
		return laneOf(e).isOpen()
	})
}

// connections returns the IDs of holdfast's connections.
func connections(t *testing.T, admin rueidis.Client) (ids []string) {
	for line := range strings.Lines(text(t, admin, "CLIENT LIST")) {
		if strings.Contains(line, "name=holdfast") {
			ids = append(ids, strings.TrimPrefix(strings.Fields(line)[0], "id="))
		}
	}
	return ids
}

// TestLaneEnds checks that a call on the lane returns soon after its context or the engine ends,
// with an unknown outcome, while the server is silent. The shared connection remains, and the lane
// is opened again.
func TestLaneEnds(t *testing.T) {
	for how, want := range map[string]error{"cancel": context.Canceled, "deadline": context.DeadlineExceeded, "close": nil} {
		t.Run(how, func(t *testing.T) {
			server := testsvc.Redis(t)
			e, admin := open(t, server.URL), plain(t, server)
			shared := connections(t, admin)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			done, req := make(chan error, 1), drivertest.Request("t", time.Minute)
			drivertest.Eventually(t, "a call is on the lane", func() bool {
				openLane(t, e)
				if how == "deadline" {
					ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
					defer context.AfterFunc(t.Context(), cancel)()
				}
				server.Stop()
				go func() {
					_, err := e.Acquire(ctx, req)
					done <- err
				}()
				for began := time.Now(); time.Since(began) < 200*time.Millisecond; time.Sleep(time.Millisecond) {
					if laneOf(e).inUse() {
						return true
					}
				}
				server.Cont() // the lane was too old
				<-done
				req = drivertest.Request("t", time.Minute)
				do(t, admin, "DEL t")
				return false
			})
			began := time.Now()
			switch how {
			case "cancel":
				cancel()
			case "close":
				_ = e.Close()
			}
			err := <-done
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("it returned after %s", took)
			}
			wantIs(t, how, err, nil)
			if want != nil && !errors.Is(err, want) {
				t.Errorf("%s: %v", how, err)
			}
			server.Cont()
			if how == "close" {
				return
			}
			wantIs(t, "cancel the request", ignoreLost(e.Release(limited(t), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID, Cancel: true})), nil)
			openLane(t, e)
			if now := connections(t, admin); len(now) != 2 || now[0] != shared[0] {
				t.Errorf("connections %v, want %v and a lane", now, shared)
			}
		})
	}
}

func ignoreLost(err error) error {
	if errors.Is(err, driver.ErrLost) {
		return nil
	}
	return err
}

// TestLaneLost checks that a request or reply that a silent lane has lost is repeated on the shared
// connection. If the connection broke, the outcome is unknown. A lost acquire is granted once
// (INVARIANT I6). If the repeat of a lost release finds no lease, it is unknown which of the two
// ended it.
func TestLaneLost(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	for what, action := range map[string]faultproxy.Action{
		"request": {Hold: never}, "reply": {Reply: faultproxy.Swallow},
		"connection": {Reply: faultproxy.Reset}, "connection in order": {Reply: faultproxy.Close},
	} {
		for _, c := range []struct{ release, full bool }{{}, {release: true}, {full: true}, {release: true, full: true}} {
			release := c.release
			t.Run(fmt.Sprintf("%s, %+v", what, c), func(t *testing.T) {
				server := testsvc.Redis(t)
				p := faultproxy.New(t, server.Addr)
				e, admin, ctx := open(t, "redis://"+p.Addr()), plain(t, server), limited(t)
				var lost atomic.Int32
				hook := func(r faultproxy.Request) faultproxy.Action {
					if r.Conn > 1 && r.Has("t") && lost.CompareAndSwap(0, 1) {
						return action
					}
					return faultproxy.Action{}
				}
				drivertest.Eventually(t, "a call was lost on the lane", func() bool {
					if c.full {
						makeContended(t, e, "t")
					}
					req := drivertest.Request("t", time.Minute)
					lease := driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID}
					if release {
						drivertest.Granted(t, e, req)
					}
					openLane(t, e)
					p.OnRequest(hook)
					var reply driver.AcquireReply
					var err error
					if release {
						err = e.Release(ctx, lease)
					} else {
						reply, err = e.Acquire(ctx, req)
					}
					p.OnRequest(nil)
					broke := what != "request" && what != "reply"
					unknown := (broke || release && what != "request") && lost.Load() == 1
					if unknown && !release {
						if errors.Is(err, rediscore.ErrGivenUp) {
							t.Errorf("a copy of the request may come after the release: %v", err)
						}
						reply, _ = e.Acquire(ctx, req)
					}
					if unknown != (err != nil) || driver.Definite(err) {
						t.Errorf("%v", err)
					}
					if number(t, admin, "EXISTS t") == 1 == release {
						t.Errorf("after %s", what)
					}
					if !release {
						if last := number(t, admin, "GET", keyspace{}.fence("t")); uint64(last) != reply.Token {
							t.Errorf("token %d, the last is %d", reply.Token, last)
						}
						wantIs(t, "release", e.Release(t.Context(), lease), nil)
					}
					return lost.Load() == 1
				})
			})
		}
	}
}

// makeContended makes requests about a name use the full scripts for some seconds.
func makeContended(t *testing.T, e *Engine, name string) {
	t.Helper()
	ctx, req := limited(t), drivertest.Request(name, time.Minute)
	if reply, err := e.Acquire(ctx, req); err != nil || reply.Outcome != driver.Granted {
		t.Errorf("%+v, %v", reply, err)
	}
	if reply, err := e.Acquire(ctx, drivertest.Request(name, time.Minute)); err != nil || reply.Outcome != driver.Held {
		t.Errorf("%+v, %v", reply, err)
	}
	wantIs(t, "release", e.Release(ctx, driver.ReleaseRequest{Name: name, LeaseID: req.LeaseID}), nil)
}

// TestLaneIsClosed checks that a lane that the server has closed is not used, and that the next
// request has a known outcome.
func TestLaneIsClosed(t *testing.T) {
	secure, files := testsvc.RedisTLS(t)
	q := url.Values{"tls_ca": {files.CA}, "tls_cert": {files.Cert}, "tls_key": {files.Key}}
	_, socket := socketServer(t)
	for name, store := range map[string]string{
		"tcp": testsvc.Redis(t).URL, "tls": secure.URL + "?" + q.Encode(), "unix": "redis+unix://" + socket,
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, store)
			for range 5 {
				openLane(t, e)
				kill := rediscore.Command{Words: strings.Fields("CLIENT KILL TYPE normal SKIPME yes")}
				if n, err := e.Store().Do(t.Context(), nil, kill); err != nil || n == int64(0) {
					t.Fatalf("%v connections closed, %v", n, err)
				}
				makeContended(t, e, "t")
			}
		})
	}
}

// TestLaneIsRefused checks that calls continue over the shared connection if the lane cannot be
// opened again because the password has changed.
func TestLaneIsRefused(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	do(t, admin, "ACL SETUSER u on >secret ~* &* +@all")
	e := open(t, "redis://u:secret@"+server.Addr)
	openLane(t, e)
	do(t, admin, "ACL SETUSER u resetpass >other")
	do(t, admin, "CLIENT KILL ID", connections(t, admin)[1])
	ctx := limited(t)
	for i := range 5 * laneCalls {
		req := drivertest.Request("t", time.Minute)
		if _, err := e.Acquire(ctx, req); err != nil {
			if i > 0 || driver.Definite(err) {
				t.Fatal(err)
			}
			continue // the lane has ended
		}
		if err := e.Release(ctx, driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID}); err != nil {
			t.Fatal(err)
		}
	}
	drivertest.Eventually(t, "it was tried", func() bool { return !laneOf(e).inUse() && !laneOf(e).isOpen() })
	if now := connections(t, admin); len(now) != 1 {
		t.Errorf("connections %v, want the shared one", now)
	}
}

// TestLaneIsForOne checks that no caller gets the answer to another's call, although some calls on
// the lane are cancelled. INVARIANT I1.
func TestLaneIsForOne(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	l, used := laneOf(e), atomic.Int32{}
	var all sync.WaitGroup
	for g := range rediscore.MostDirect + 2 { // if some pause, the others are few
		all.Go(func() {
			name, last := fmt.Sprint("t", g), uint64(0)
			for i := range 600 {
				limit := time.Minute
				if i%20 == 19 {
					limit = rand.N(400 * time.Microsecond)
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				req := drivertest.Request(name, time.Minute)
				reply, err := e.Acquire(ctx, req)
				if l.isOpen() {
					used.Add(1)
				}
				cancel()
				ctx = t.Context()
				release := driver.ReleaseRequest{Name: name, LeaseID: req.LeaseID, Cancel: err != nil}
				switch {
				case err != nil && !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
				case err == nil && (reply.Outcome != driver.Granted || reply.Token <= last || !strings.Contains(text(t, admin, "GET", name), string(req.LeaseID))):
					t.Errorf("%+v after token %d", reply, last)
				}
				last = max(last, reply.Token)
				if err := ignoreLost(e.Release(ctx, release)); err != nil {
					t.Error(err)
				}
				if i%50 < 25 {
					time.Sleep(rand.N(200 * time.Microsecond))
				}
			}
		})
	}
	all.Wait()
	if used.Load() < 100 {
		t.Errorf("the lane was open in %d calls: the test proves little", used.Load())
	}
}

// TestLaneOpensLate checks that a short program has one connection, that a lane is for one call,
// that a silent lane is not used, and that a caller never connects.
func TestLaneOpensLate(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin, ctx := open(t, server.URL), plain(t, server), limited(t)
	l := laneOf(e)
	for range laneCalls - 1 {
		if l.reserve(ctx) {
			t.Fatal("the lane is open at once")
		}
	}
	if n := len(connections(t, admin)); n != 1 {
		t.Errorf("%d connections of a short program", n)
	}
	openLane(t, e)
	drivertest.Eventually(t, "a lane that was silent is not used", func() bool {
		l.mu.Lock()
		l.answered = l.answered.Add(-laneAge)
		l.mu.Unlock()
		return !l.reserve(ctx)
	})
	drivertest.Eventually(t, "the lane is reserved", func() bool {
		openLane(t, e)
		if l.reserve(t.Context()) {
			t.Error("a call without a limit has the lane")
		}
		return l.reserve(ctx)
	})
	if l.reserve(ctx) {
		t.Error("a second call has the lane")
	}
	l.end(true)
	openLane(t, e)
	l.mu.Lock()
	l.peeker = nil // the connection is cut after the check
	l.mu.Unlock()
	l.conn.cut()
	for sent := true; sent; { // the first call finds that it is cut
		if !l.reserve(ctx) {
			l.mu.Lock()
			l.answered = time.Now()
			l.mu.Unlock()
			continue
		}
		var err error
		if _, sent, err = l.eval(ctx, "0", nil, nil); sent != (err != nil) || driver.Definite(err) {
			t.Fatal(err)
		}
	}
}
