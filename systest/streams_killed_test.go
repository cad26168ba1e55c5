package systest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
	"github.com/holdfast-locks/holdfast/wire"
)

// holdStreams is a job: the crew holds many locks by streams until it is killed. Its store is the
// URL of a server.
func holdStreams(ctx context.Context, j traffic.Job) (any, error) {
	var all sync.WaitGroup
	held := make(chan struct{}, j.Names)
	for i := range j.Names {
		all.Go(func() {
			c := &streamer{urls: []string{j.Store}, query: "&direct=1", req: wire.LeaseRequest{Name: fmt.Sprint(j.Name, "/", i), TTLMS: j.TTL.Milliseconds()}}
			c.told = func(l wire.HoldLine, _ time.Time) {
				if l.Event == "acquired" {
					held <- struct{}{}
				}
			}
			_ = c.hold(ctx)
		})
	}
	for range j.Names {
		<-held
	}
	j.Out(j.Names)
	all.Wait()
	return nil, ctx.Err()
}

// TestStreamsKilledClients checks that the locks of killed clients are free at once if the clients
// declared their connections direct.
func TestStreamsKilledClients(t *testing.T) {
	const ttl = time.Minute
	n := soak.Count(50, 1000)
	s := newStore(t)
	_, url := startServer(t, s.server.URL)
	c := traffic.Start(t, traffic.Job{Job: "hold streams", Store: url, Name: t.Name(), Names: n, TTL: ttl})
	c.Begin()
	var held int
	c.Next(&held)
	if locks := listed(t, s.engine, t.Name()); locks != n {
		t.Fatalf("%d locks are held, want %d", locks, n)
	}
	c.Kill()
	killed := time.Now()
	for listed(t, s.engine, t.Name()) > 0 && time.Since(killed) < ttl {
		time.Sleep(10 * time.Millisecond)
	}
	took := time.Since(killed)
	report.Row(t, "SIGKILL of a client with direct hold streams", "free within 2 s",
		"%d streams: all free after %s, TTL %s", n, took.Round(time.Millisecond), ttl)
	if took > promised(2*time.Second, patience) {
		t.Errorf("free after %s", took)
	}
}

// listed returns how many locks with a prefix are held.
func listed(t *testing.T, engine driver.Lister, prefix string) (n int) {
	t.Helper()
	for lock, err := range engine.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		if len(lock.Holders) > 0 {
			n++
		}
	}
	return n
}

// survivors records for each stream when it continued after its server was killed.
type survivors struct {
	mu        sync.Mutex
	killed    time.Time
	token     map[string]uint64
	continued map[string]time.Duration
	lost      int
}

func (f *survivors) acquired(name string, token uint64, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.token[name] == 0:
		f.token[name] = token
	case f.token[name] != token:
		f.lost++
	case !f.killed.IsZero():
		f.continued[name] = at.Sub(f.killed)
	}
}

// TestStreamsKilledServer kills one of two servers. It checks that leases and streams continue at
// the other server with the same tokens, and that waiters keep their order and receive the
// hand-over by message.
func TestStreamsKilledServer(t *testing.T) {
	const ttl = 30 * time.Second
	n, waiters := soak.Count(60, 500), soak.Count(5, 20)
	s := newStore(t)
	doomed, a := startServer(t, s.server.URL)
	_, b := startServer(t, s.server.URL)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()

	engine, err := httplock.Open(ctx, a+","+strings.TrimPrefix(b, "http://"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	client := newClient(t, engine, &holdfast.Options{TTL: ttl})
	leases := make([]*holdfast.Lease, n)
	for i := range leases {
		if leases[i], err = client.TryAcquire(ctx, fmt.Sprint(t.Name(), "/lease/", i), nil); err != nil {
			t.Fatal(err)
		}
	}

	f := &survivors{token: map[string]uint64{}, continued: map[string]time.Duration{}}
	stream := func(c *streamer) {
		c.told = func(l wire.HoldLine, at time.Time) {
			if l.Event == "acquired" {
				f.acquired(c.req.Name, l.FencingToken, at)
			}
		}
		all.Go(func() {
			if err := c.hold(ctx); ctx.Err() == nil {
				t.Errorf("%s: %v", c.req.Name, err)
			}
		})
	}
	for i := range n {
		stream(&streamer{urls: []string{a, b}, query: "&direct=1", req: wire.LeaseRequest{Name: fmt.Sprint(t.Name(), "/stream/", i), TTLMS: ttl.Milliseconds()}})
	}
	q := queueOf(t, ctx, &all, client, waiters, a, b)
	eventually(t, "streams are held", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.token) == n })

	f.mu.Lock()
	f.killed = time.Now()
	f.mu.Unlock()
	doomed.Kill()
	eventually(t, "streams continue", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.continued)+f.lost >= n })
	f.mu.Lock()
	soon, slowest := 0, time.Duration(0)
	for _, took := range f.continued {
		if slowest = max(slowest, took); took <= promised(2*time.Second, patience) {
			soon++
		}
	}
	f.mu.Unlock()
	if soon*100 < n*99 {
		t.Errorf("%d of %d streams continued in time with the same token, %d with another", soon, n, f.lost)
	}
	slowestTurn := q.serve(t)
	time.Sleep(time.Until(f.killed.Add(soak.For(0, ttl+5*time.Second)))) // leases that were not renewed have expired by then
	for _, l := range leases {
		if err := l.Verify(ctx); err != nil {
			t.Errorf("%s: %v", l.Name(), err)
		}
	}
	if locks := listed(t, s.engine, t.Name()+"/stream/"); locks != n {
		t.Errorf("%d streams hold their locks, want %d", locks, n)
	}
	report.Row(t, "SIGKILL of one of two servers on one store", "no lease lost; 99 % of the streams continue with the same token within 2 s; waiters keep their order, and hear by message",
		"%d leases, %d streams, %d waiters: no lease lost, %d streams within 2 s, the slowest after %s; hand-overs after %s at most", n, n, waiters, soon, slowest.Round(time.Millisecond), slowestTurn.Round(time.Millisecond))
}

// A queue is streams that wait behind a lease.
type queue struct {
	first *holdfast.Lease
	mu    sync.Mutex
	order []int
	at    []time.Time
	done  []context.CancelFunc
}

func queueOf(t *testing.T, ctx context.Context, all *sync.WaitGroup, client *holdfast.Client, n int, urls ...string) *queue {
	t.Helper()
	name := t.Name() + "/queue"
	first, err := client.TryAcquire(ctx, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{first: first}
	for i := range n {
		placed := make(chan struct{})
		ctx, cancel := context.WithCancel(ctx)
		q.done = append(q.done, cancel)
		c := &streamer{urls: urls, query: "&direct=1", req: wire.LeaseRequest{Name: name, TTLMS: 30_000, WaitMS: time.Hour.Milliseconds()}}
		c.told = func(l wire.HoldLine, at time.Time) {
			switch l.Event {
			case "queued":
				if placed != nil {
					close(placed)
					placed = nil
				}
			case "acquired":
				q.mu.Lock()
				defer q.mu.Unlock()
				q.order, q.at = append(q.order, i), append(q.at, at)
			}
		}
		wait := placed
		all.Go(func() { _ = c.hold(ctx) })
		<-wait
	}
	return q
}

// serve lets all waiters have their turns, and returns how long the slowest hand-over took.
func (q *queue) serve(t *testing.T) (slowest time.Duration) {
	t.Helper()
	for i := range q.done {
		began := time.Now()
		if i == 0 {
			if err := q.first.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		} else {
			q.done[q.order[i-1]]()
		}
		eventually(t, "the next has its turn", func() bool { q.mu.Lock(); defer q.mu.Unlock(); return len(q.order) > i })
		q.mu.Lock()
		slowest = max(slowest, q.at[i].Sub(began))
		q.mu.Unlock()
	}
	q.done[q.order[len(q.order)-1]]()
	if !slices.IsSorted(q.order) {
		t.Errorf("the order of the waiters is %v", q.order)
	}
	if slowest > promised(500*time.Millisecond, 3*time.Second) {
		t.Errorf("a hand-over took %s: no waiter was notified by a message", slowest)
	}
	return slowest
}

// TestStreamsCost checks that streams take little memory, and stay alive.
func TestStreamsCost(t *testing.T) {
	const ttl, n = 30 * time.Second, 2000
	most := 48 << 10
	if !soak.Long() {
		most = 64 << 10 // the first ping may come just before or after a garbage collection
	}
	s := newStore(t)
	server, url := startServer(t, s.server.URL)
	lines := make(chan string, 16*n)
	var conns []net.Conn
	var all sync.WaitGroup
	open := func(from, to int) {
		for i := from; i < to; i++ {
			conns = append(conns, openStream(t, &all, strings.TrimPrefix(url, "http://"), fmt.Sprint(t.Name(), "/", i), ttl, lines))
		}
	}
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
		all.Wait()
	}()
	open(0, 50) // the first streams allocate what all share
	before := resident(t, server.PID())
	open(50, 50+n)
	await := func(event string, n int) {
		t.Helper()
		timeout := time.After(patience)
		for range n {
			select {
			case line := <-lines:
				if !strings.Contains(line, event) {
					t.Fatalf("%s, want %s", line, event)
				}
			case <-timeout:
				t.Fatalf("no %s within %s", event, patience)
			}
		}
	}
	await(`"acquired"`, 50+n)
	for range soak.Count(1, 12) {
		await(`"ping"`, 50+n)
	}
	each := (resident(t, server.PID()) - before) / n
	report.Row(t, "many hold streams on one server", "48 KiB of memory each, and all alive after a minute", "%d streams, %d KiB each, all alive after %d pings", n, each>>10, soak.Count(1, 12))
	if each > most && !underRace { // which multiplies memory
		t.Errorf("%d bytes each, want %d at most", each, most)
	}
	if locks := listed(t, s.engine, t.Name()); locks != 50+n {
		t.Errorf("%d locks are held, want %d", locks, 50+n)
	}
}

// openStream opens a stream on a new connection, and sends its events to lines.
func openStream(t *testing.T, all *sync.WaitGroup, addr, name string, ttl time.Duration, lines chan<- string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"name":%q,"ttl_ms":%d}`, name, ttl.Milliseconds())
	_, err = fmt.Fprintf(conn, "POST /v1/leases?hold=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s",
		lockinfo.NewLeaseID(), len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	all.Go(func() {
		for in := bufio.NewScanner(conn); in.Scan(); {
			if line := in.Text(); strings.HasPrefix(line, "{") {
				lines <- line
			}
		}
	})
	return conn
}

// resident returns how many bytes of memory a process has.
func resident(t *testing.T, pid int) (n int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// promised returns limit in a soak, which has the machine to itself, and bearable otherwise.
func promised(limit, bearable time.Duration) time.Duration {
	if soak.Long() {
		return limit
	}
	return bearable
}
