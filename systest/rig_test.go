package systest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/redislock"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// patience is how long a test waits at most, even on a loaded machine.
const patience = 20 * time.Second

// A store is a real server, with a plain client and an engine that connect to it without faults.
type store struct {
	server *testsvc.Server
	plain  rueidis.Client
	engine *redislock.Engine
	ops    map[string]op // by the script's hash
}

// An op is the operation of a request to the store.
type op string

const (
	acquire  op = "acquire"
	extend   op = "extend"
	release  op = "release"
	complete op = "complete"
	script   op = "script" // any other script
	other    op = "other"  // handshakes, pings, subscriptions
)

// newStore starts a server with the given options.
func newStore(t *testing.T, options ...string) *store {
	t.Helper()
	server := testsvc.Redis(t, options...)
	s := &store{server: server, plain: openPlain(t, server), engine: openEngine(t, server.URL)}
	s.learnOps(t)
	return s
}

// openPlain returns a plain client of one server.
func openPlain(t *testing.T, server *testsvc.Server) rueidis.Client {
	t.Helper()
	plain, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr}, ForceSingleClient: true, DisableCache: true, ClientSetInfo: rueidis.DisableClientSetInfo,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plain.Close)
	return plain
}

// learnOps finds out which scripts each operation of the engine runs, and loads them all. It
// watches the engine perform each operation once in its simple form and once in its full form.
func (s *store) learnOps(t *testing.T) {
	t.Helper()
	p := faultproxy.New(t, s.server.Addr)
	var mu sync.Mutex
	var hashes []string
	p.OnRequest(func(r faultproxy.Request) faultproxy.Action {
		mu.Lock()
		defer mu.Unlock()
		if r.Command() == "EVALSHA" {
			hashes = append(hashes, r.Words[1])
		}
		return faultproxy.Action{}
	})
	e := openEngine(t, "redis://"+p.Addr())
	s.ops = map[string]op{}
	learn := func(o op, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", o, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, hash := range hashes {
			s.ops[hash] = o
		}
		hashes = nil
	}
	cycle := func(minToken uint64, extends time.Duration, end func(driver.AcquireRequest) error) {
		t.Helper()
		req := request("learn")
		req.MinToken = minToken
		_, err := e.Acquire(t.Context(), req)
		learn(acquire, err)
		learn(extend, e.Extend(t.Context(), []driver.ExtendRequest{{Name: req.Name, LeaseID: req.LeaseID, TTL: req.TTL + extends}})[0])
		learn(release, end(req))
	}
	cycle(0, 0, func(req driver.AcquireRequest) error {
		return e.Release(t.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID})
	})
	cycle(1, time.Minute, func(req driver.AcquireRequest) error {
		return e.Release(t.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID, Cancel: true})
	})
	req := request("learn")
	_, err := e.Acquire(t.Context(), req)
	learn(acquire, err)
	learn(complete, e.Complete(t.Context(), driver.CompleteRequest{Name: req.Name, LeaseID: req.LeaseID, Retention: time.Minute}))
	if _, err := e.Forget(t.Context(), req.Name); err != nil {
		t.Fatal(err)
	}
	if len(s.ops) != 7 {
		t.Fatalf("acquire, extend and release, plain and in full, and complete run %d scripts: %v", len(s.ops), s.ops)
	}
}

// opOf returns the operation of a request.
func (s *store) opOf(r faultproxy.Request) op {
	if r.Command() == "EVALSHA" {
		if o, ok := s.ops[r.Words[1]]; ok {
			return o
		}
		return script
	}
	return other
}

// do runs a command that must not fail, on the connection without faults.
func (s *store) do(t testing.TB, words ...string) rueidis.RedisResult {
	t.Helper()
	r := s.plain.Do(context.Background(), s.plain.B().Arbitrary(words...).Build())
	if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Errorf("%s: %v", strings.Join(words, " "), err)
	}
	return r
}

// held reports whether the store has a holder of the lock.
func (s *store) held(t testing.TB, name string) bool {
	t.Helper()
	n, err := s.do(t, "EXISTS", name).AsInt64()
	return err == nil && n != 0
}

// holding returns the lease that holds the lock in the store, or the zero Holding.
func (s *store) holding(t testing.TB, name string) lockinfo.Holding {
	t.Helper()
	lock, err := s.engine.Inspect(context.Background(), name)
	if err != nil {
		t.Errorf("inspect %q: %v", name, err)
	}
	if len(lock.Holders) == 0 {
		return lockinfo.Holding{}
	}
	return lock.Holders[0]
}

// A link is a separate network between a client and the store.
type link struct {
	*faultproxy.Proxy
	engine driver.Engine
	store  *store
}

func (s *store) link(t *testing.T) *link {
	t.Helper()
	return s.linkBy(t, traffic.Redislock)
}

// linkBy is link for an engine of the given kind.
func (s *store) linkBy(t *testing.T, by traffic.Kind) *link {
	t.Helper()
	p := faultproxy.New(t, s.server.Addr)
	return &link{Proxy: p, engine: openBy(t, by, "redis://"+p.Addr()), store: s}
}

// on lets decide choose the fate of each request of an operation; other requests pass.
func (l *link) on(o op, decide func(faultproxy.Request) faultproxy.Action) {
	l.OnRequest(func(r faultproxy.Request) faultproxy.Action {
		if l.store.opOf(r) == o {
			return decide(r)
		}
		return faultproxy.Action{}
	})
}

// client returns a client on the link. It is closed when the test ends, after the link is healed.
func (l *link) client(t *testing.T, opts *holdfast.Options) *holdfast.Client {
	t.Helper()
	return newClient(t, l.engine, opts)
}

func newClient(t *testing.T, engine driver.Engine, opts *holdfast.Options) *holdfast.Client {
	t.Helper()
	var o holdfast.Options
	if opts != nil {
		o = *opts
	}
	o.SharedEngine = true // closed when the test ends
	client, err := holdfast.New(engine, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeClient(t, client) })
	return client
}

// closeClient closes a client, which waits until its clean-up has ended.
func closeClient(t testing.TB, client *holdfast.Client) {
	t.Helper()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

func openEngine(t *testing.T, url string) *redislock.Engine {
	t.Helper()
	return drivertest.Open(t, redislock.Open, url)
}

// openBy opens an engine of the given kind.
func openBy(t *testing.T, by traffic.Kind, url string) driver.Engine {
	t.Helper()
	return drivertest.Open(t, func(ctx context.Context, url string) (driver.Engine, error) { return traffic.Open(ctx, by, url) }, url)
}

// request returns an acquire request with a new lease ID.
func request(name string) driver.AcquireRequest {
	return driver.AcquireRequest{Name: name, LeaseID: lockinfo.NewLeaseID(), TTL: 30 * time.Second, Holder: lockinfo.Holder{Label: "systest"}}
}

// within polls until ok returns true, and reports whether it did within bound.
func within(bound time.Duration, ok func() bool) bool {
	for end := time.Now().Add(bound); ; time.Sleep(time.Millisecond) {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// eventually fails the test if ok does not return true within patience.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !within(patience, ok) {
		t.Fatalf("not within %s: %s", patience, what)
	}
}

// acquireWith acquires a lock, and waits for it without limit.
func acquireWith(t *testing.T, client *holdfast.Client, name string, opts *holdfast.AcquireOptions) *holdfast.Lease {
	t.Helper()
	lease, err := client.Acquire(t.Context(), name, opts)
	if err != nil {
		t.Fatalf("acquire %q: %v", name, err)
	}
	return lease
}
