package goredislock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// TestTLS checks that a client with TLS and a certificate of its own needs no other options, and
// that the error shows why the server refuses a client.
func TestTLS(t *testing.T) {
	t.Parallel()
	server, files := testsvc.RedisTLS(t)
	_, others := testsvc.RedisTLS(t)
	config := func(ca, cert, key, name string) func(*redis.Options) {
		pem, err := os.ReadFile(ca)
		if err != nil {
			t.Fatal(err)
		}
		own, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		return func(o *redis.Options) {
			o.TLSConfig, o.DialerRetries = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, ServerName: name, MinVersion: tls.VersionTLS12}, 1
		}
	}
	for what, change := range map[string]func(*redis.Options){
		"signed by somebody else": config(others.CA, files.Cert, files.Key, "redis.test"),
		"another name":            config(files.CA, files.Cert, files.Key, "other.test"),
	} {
		_, err := engine(t, client(t, server, change), nil).Acquire(t.Context(), drivertest.Request("a", time.Minute))
		drivertest.WantIs(t, what, err, driver.ErrUnavailable)
	}
	e := engine(t, client(t, server, config(files.CA, files.Cert, files.Key, "redis.test")), &Options{TellDeletions: true})
	held := drivertest.Request("a", time.Minute)
	drivertest.Granted(t, e, held)
	renew(t, e, held)
	_, w := drivertest.Queued(t, e, "a", time.Minute)
	select {
	case <-w.C(): // the inbox is listening
	case <-time.After(drivertest.Patience):
		t.Error("no subscription over TLS")
	}
	drivertest.Release(t, e, held)
	drivertest.HandedOver(t, w)
}

// A recorder is a hook of the caller.
type recorder struct {
	mu  sync.Mutex
	saw map[string]any // the values in the context of each command
}

type key struct{}

func (*recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.mu.Lock()
		r.saw[strings.ToLower(cmd.Name())] = ctx.Value(key{})
		r.mu.Unlock()
		if err := next(ctx, cmd); err != nil {
			return errors.Join(errors.New("hook"), err) // as hooks do that add details
		}
		return nil
	}
}

func (*recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestHooksStayTheCallers checks that the caller's hooks see our requests with the values of the
// caller's context, and may wrap the errors.
func TestHooksStayTheCallers(t *testing.T) {
	server := testsvc.Redis(t)
	c := client(t, server, nil)
	r := &recorder{saw: map[string]any{}}
	c.AddHook(r)
	e := engine(t, c, nil)
	ctx := context.WithValue(t.Context(), key{}, "span")
	shared := drivertest.Request("a", time.Minute)
	shared.Mode = lockinfo.Shared                                                            // a request without a batch
	if reply, err := e.Acquire(ctx, shared); err != nil || reply.Outcome != driver.Granted { // NOSCRIPT is recognized although the hook wraps it
		t.Fatalf("%+v, %v", reply, err)
	}
	store, err := newConn(c)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := store.Do(ctx, rediscore.Command{Words: []string{"GET"}, Keys: []string{"nobody"}}); reply != nil || err != nil {
		t.Errorf("nil through the hook: %v, %v", reply, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.saw["evalsha"] != "span" || r.saw["eval"] != "span" {
		t.Errorf("the hook saw %v", r.saw)
	}
}

// An impatient hook returns when its context ends, and leaves its request in flight.
type impatient struct {
	recorder
	all *sync.WaitGroup // the requests in flight
}

func (i *impatient) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		answer := make(chan error, 1)
		i.all.Go(func() { answer <- next(context.WithoutCancel(ctx), cmd) })
		select {
		case err := <-answer:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestHookThatLeaves checks that a request that a hook has sent, and did not wait for, may be
// carried out.
func TestHookThatLeaves(t *testing.T) {
	server := testsvc.Redis(t)
	c := client(t, server, nil)
	e := engine(t, c, nil)
	drivertest.Cycle(t, e, "a")
	var under sync.WaitGroup
	c.AddHook(&impatient{all: &under})
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	shared := drivertest.Request("b", time.Minute)
	shared.Mode = lockinfo.Shared
	_, err := e.Acquire(ctx, shared)
	if err == nil || ctx.Err() != nil || driver.Definite(err) {
		t.Errorf("%v (context: %v); want an error after half of the time, after which the outcome is unknown", err, ctx.Err())
	}
	server.Cont()
	under.Wait()
}

// TestOptionsOfTheCaller checks that locks work whatever contexts, pools and protocols the caller's
// client uses.
func TestOptionsOfTheCaller(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	for what, change := range map[string]func(*redis.Options){
		"contexts":        func(o *redis.Options) { o.ContextTimeoutEnabled = true },
		"last in":         func(o *redis.Options) { o.PoolFIFO = true },
		"short-lived":     func(o *redis.Options) { o.ConnMaxLifetime = time.Millisecond },
		"older protocol":  func(o *redis.Options) { o.Protocol = 2 },
		"no repeats":      func(o *redis.Options) { o.MaxRetries = -1 },
		"another base":    func(o *redis.Options) { o.DB = 3 },
		"no idle":         func(o *redis.Options) { o.MaxIdleConns, o.ConnMaxIdleTime = 1, time.Millisecond },
		"no identity":     func(o *redis.Options) { o.DisableIdentity = true },
		"quick to renew":  func(o *redis.Options) { o.ReadTimeout, o.PoolTimeout = 500*time.Millisecond, time.Second },
		"a shared server": func(o *redis.Options) { o.PoolSize, o.MaxActiveConns = 2, 2 },
	} {
		t.Run(what, func(t *testing.T) {
			locks, err := holdfast.New(engine(t, client(t, server, change), &Options{Prefix: what + ":"}), nil)
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			inside := 0
			for range 8 {
				all.Go(func() {
					for range 5 {
						if err := locks.Do(t.Context(), "a", nil, func(context.Context, *holdfast.Lease) error { inside++; return nil }); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if inside != 40 {
				t.Errorf("%d times, want 40", inside)
			}
			if err := locks.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSlotsMove checks that a lease lasts, and can be renewed, while a cluster moves its name.
// Afterwards the client uses the other node, and the token is the same.
func TestSlotsMove(t *testing.T) {
	t.Parallel()
	g := testsvc.RedisCluster(t)
	var engines [2]*Engine // the second engine sends nothing meanwhile, and has to learn of the move
	for i := range engines {
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs(g.Masters), ClusterStateReloadInterval: time.Hour})
		t.Cleanup(func() { _ = c.Close() })
		engines[i] = engine(t, c, nil)
	}
	e, late := engines[0], engines[1]
	held := drivertest.Request("a", time.Minute)
	token := drivertest.Granted(t, e, held)
	drivertest.Held(t, late, drivertest.Request("a", time.Minute))
	from, to := g.Masters[g.Owner("a")], g.Masters[(g.Owner("a")+1)%len(g.Masters)]
	must := func(s *testsvc.Server, words ...string) string {
		t.Helper()
		text, err := s.Do(words...)
		if err != nil {
			t.Fatalf("%v: %v", words, err)
		}
		return text
	}
	slot := must(from, "CLUSTER", "KEYSLOT", "a")
	must(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", must(from, "CLUSTER", "MYID"))
	must(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", must(to, "CLUSTER", "MYID"))
	host, port, _ := net.SplitHostPort(to.Addr)
	for _, one := range []string{"a", ""} { // first the lease's key moves: ASK; then all keys
		if one == "" {
			for _, k := range strings.Fields(must(from, "CLUSTER", "GETKEYSINSLOT", slot, strconv.Itoa(100))) {
				must(from, "MIGRATE", host, port, k, "0", "5000")
			}
		} else {
			must(from, "MIGRATE", host, port, one, "0", "5000")
		}
		renew(t, e, held)
	}
	for _, s := range append([]*testsvc.Server{to, from}, g.Masters...) {
		must(s, "CLUSTER", "SETSLOT", slot, "NODE", must(to, "CLUSTER", "MYID"))
	}
	if again := drivertest.Granted(t, e, held); again != token {
		t.Errorf("token %d after the move, was %d", again, token)
	}
	drivertest.Held(t, late, drivertest.Request("a", time.Minute))
	drivertest.Release(t, e, held)
	if next := drivertest.Granted(t, e, drivertest.Request("a", time.Minute)); next <= token {
		t.Errorf("token %d after %d", next, token)
	}
	said := must(from, "INFO", "errorstats")
	for _, code := range []string{"ASK", "MOVED"} {
		if !strings.Contains(said, "errorstat_"+code+":") {
			t.Errorf("nothing was refused with %s: %s", code, said)
		}
	}
}

// TestReplicatedAfterMove: an acquire that waits for replicas, on a connection of its own, learns
// that the slot has moved.
func TestReplicatedAfterMove(t *testing.T) {
	t.Parallel()
	g := testsvc.RedisMasters(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs(g.Masters), ClusterStateReloadInterval: time.Hour})
	t.Cleanup(func() { _ = c.Close() })
	e := engine(t, c, nil)
	request := func() driver.AcquireRequest {
		req := drivertest.Request("a", 10*time.Millisecond) // half of it bounds the wait for replicas
		req.Replicas = 1
		return req
	}
	if reply, err := e.Acquire(t.Context(), request()); err != nil || reply.Outcome != driver.Granted {
		t.Fatalf("before the move: %+v, %v", reply, err)
	}
	slot, err := g.Masters[0].Do("CLUSTER", "KEYSLOT", "a")
	if err != nil {
		t.Fatal(err)
	}
	from, to := g.Masters[g.Owner("a")], g.Masters[(g.Owner("a")+1)%len(g.Masters)]
	id, err := to.Do("CLUSTER", "MYID")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = from.Do("FLUSHALL") // a slot with keys does not move at once
	for _, s := range []*testsvc.Server{to, from} {
		if _, err := s.Do("CLUSTER", "SETSLOT", slot, "NODE", id); err != nil {
			t.Fatal(err)
		}
	}
	drivertest.Eventually(t, "the engine finds the new node", func() bool {
		_, err := e.Acquire(t.Context(), request())
		return err == nil
	})
}
