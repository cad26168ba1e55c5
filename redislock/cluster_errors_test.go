package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// must sends a command that must succeed.
func must(t *testing.T, s *testsvc.Server, words ...string) string {
	t.Helper()
	text, err := s.Do(words...)
	if err != nil {
		t.Fatalf("%s: %s: %v", s.Addr, strings.Join(words, " "), err)
	}
	return text
}

// A migration moves the slot of a name from one master to another.
type migration struct {
	t        *testing.T
	c        *testsvc.Cluster
	slot     string
	from, to *testsvc.Server
}

func newMigration(t *testing.T, c *testsvc.Cluster, name string) *migration {
	i := c.Owner(name)
	return &migration{
		t: t, c: c, slot: must(t, c.Masters[0], "CLUSTER", "KEYSLOT", name),
		from: c.Masters[i], to: c.Masters[(i+1)%len(c.Masters)],
	}
}

func (m *migration) begin() {
	m.t.Helper()
	must(m.t, m.to, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", must(m.t, m.from, "CLUSTER", "MYID"))
	must(m.t, m.from, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", must(m.t, m.to, "CLUSTER", "MYID"))
}

// move moves at most n keys.
func (m *migration) move(n int) {
	m.t.Helper()
	host, port, _ := net.SplitHostPort(m.to.Addr)
	keys := strings.Fields(must(m.t, m.from, "CLUSTER", "GETKEYSINSLOT", m.slot, strconv.Itoa(n)))
	for _, key := range keys {
		must(m.t, m.from, "MIGRATE", host, port, key, "0", "5000")
	}
}

// said fails the test unless one of the two masters has refused a request in this way.
func (m *migration) said(code string) {
	m.t.Helper()
	told := must(m.t, m.from, "INFO", "errorstats") + must(m.t, m.to, "INFO", "errorstats")
	if !strings.Contains(told, "errorstat_"+code+":") {
		m.t.Errorf("no %s among the errors: %s", code, told)
	}
}

func (m *migration) end() {
	m.t.Helper()
	id := must(m.t, m.to, "CLUSTER", "MYID")
	for _, s := range append([]*testsvc.Server{m.to, m.from}, m.c.Masters...) {
		must(m.t, s, "CLUSTER", "SETSLOT", m.slot, "NODE", id)
	}
}

// clusterClientOf returns a client of the library on the cluster.
func clusterClientOf(t *testing.T, url string, ttl time.Duration) *holdfast.Client {
	t.Helper()
	client, err := holdfast.New(open(t, url), &holdfast.Options{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestClusterErrors checks that a refusal by a node is followed, or repeated within the deadline,
// or a clear error that has changed nothing.
func TestClusterErrors(t *testing.T) {
	t.Parallel()
	c := testsvc.RedisCluster(t)
	e := open(t, c.URL)

	t.Run("MOVED", func(t *testing.T) {
		h := drivertest.Request("moved", time.Minute)
		token := drivertest.Granted(t, e, h)
		m := newMigration(t, c, "moved")
		m.begin()
		m.move(100)
		m.end()
		// The client has the old map, and learns the new node from the old one.
		if err := extend(t, e, h, time.Hour); err != nil {
			t.Errorf("extend after the slot has moved: %v", err)
		}
		if again := drivertest.Granted(t, e, h); again != token {
			t.Errorf("token %d after the slot has moved, was %d", again, token)
		}
		m.said("MOVED")
		drivertest.Held(t, e, drivertest.Request("moved", time.Minute))
		drivertest.Release(t, e, h)
		if next := drivertest.Granted(t, e, drivertest.Request("moved", time.Minute)); next <= token {
			t.Errorf("token %d after %d: the last token did not move along", next, token)
		}
	})

	t.Run("ASK and TRYAGAIN", func(t *testing.T) {
		const ttl = time.Second
		client := clusterClientOf(t, c.URL, ttl)
		var leases []*holdfast.Lease // some keys move first, some last
		for i := range 6 {
			lease, err := client.Acquire(t.Context(), fmt.Sprint("{asked}held-", i), nil)
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, lease)
		}
		first := drivertest.Request("{asked}free", time.Minute)
		token := drivertest.Granted(t, e, first)
		drivertest.Release(t, e, first)
		m := newMigration(t, c, "{asked}")
		m.begin()
		m.move(6) // of 13
		for what, call := range drivertest.Calls(t.Context(), e, "{asked}free") {
			if what == "list" {
				continue // a list reads each node
			}
			// Recall and forget have a single key, so a node can answer them.
			switch err := call(); what {
			case "recall", "forget":
				wantIs(t, what, err, nil)
			case "extend": // needs one key, too, for an exclusive lease
				wantIs(t, what, err, driver.ErrLost)
			default:
				wantIs(t, what, err, driver.ErrUnavailable)
				wantText(t, err, "try again later")
			}
		}
		m.said("ASK")
		m.said("TRYAGAIN")
		done := make(chan error, 1)
		go func() { // a client waits for the end of the lease
			ctx, cancel := context.WithTimeout(t.Context(), drivertest.Patience)
			defer cancel()
			waiting, err := client.Acquire(ctx, "{asked}free", nil)
			if err == nil && waiting.Token() <= token {
				t.Errorf("token %d after %d", waiting.Token(), token)
			}
			if err == nil {
				err = waiting.Release(ctx)
			}
			done <- err
		}()
		time.Sleep(3 * ttl)
		for i, lease := range leases {
			if !lease.Valid() {
				t.Errorf("lease %d in the middle of it: %v", i, context.Cause(lease.Context()))
			}
			if i%2 == 0 {
				wantIs(t, "release in the middle of it", lease.Release(t.Context()), nil)
			}
		}
		select {
		case err := <-done:
			t.Errorf("in the middle of it: %v", err)
		default:
		}
		m.move(100)
		m.end()
		if err := <-done; err != nil {
			t.Errorf("acquire that began in the middle of it: %v", err)
		}
		for i, lease := range leases {
			if i%2 == 0 {
				drivertest.Granted(t, e, drivertest.Request(lease.Name(), time.Minute))
			} else if err := lease.Release(t.Context()); err != nil {
				t.Errorf("release of a lease that was there all the time: %v", err)
			}
		}
	})

	t.Run("failover by hand", func(t *testing.T) {
		h := drivertest.Request("failover", time.Minute)
		token := drivertest.Granted(t, e, h)
		i := c.Owner("failover")
		must(t, c.Replicas[i], "CLUSTER", "FAILOVER")
		drivertest.Eventually(t, "the replica is the master", func() bool { return c.Replicas[i].IsMaster() })
		drivertest.Eventually(t, "the lease can be extended", func() bool {
			err := extend(t, e, h, time.Minute)
			if err != nil {
				wantIs(t, "extend", err, driver.ErrUnavailable)
			}
			return err == nil
		})
		if again := drivertest.Granted(t, e, h); again != token {
			t.Errorf("token %d after the failover, was %d", again, token)
		}
	})

	t.Run("OOM", func(t *testing.T) {
		for _, s := range append(c.Masters, c.Replicas...) {
			must(t, s, "CONFIG", "SET", "maxmemory", "1")
		}
		_, err := e.Acquire(t.Context(), drivertest.Request("full", time.Minute))
		wantIs(t, "acquire", err, driver.ErrUnavailable)
		wantText(t, err, "raise maxmemory")
		for _, s := range append(c.Masters, c.Replicas...) {
			must(t, s, "CONFIG", "SET", "maxmemory", "0")
		}
		drivertest.Cycle(t, e, "full")
	})

	t.Run("NOPERM", func(t *testing.T) {
		for _, s := range append(c.Masters, c.Replicas...) {
			must(t, s, "ACL", "SETUSER", "app", "on", ">"+secret, "~other:*", "&*", "+@all")
		}
		url := strings.Replace(c.URL, "://", "://app:"+secret+"@", 1)
		for what, call := range drivertest.Calls(t.Context(), open(t, url), "mine") {
			if what != "list" {
				wantIs(t, what, call(), driver.ErrPermission)
			}
		}
		other, req := open(t, url+"?prefix=other:"), drivertest.Request("mine", time.Minute)
		drivertest.Eventually(t, "it is granted, once all nodes know of the failover", func() bool {
			_, err := other.Acquire(t.Context(), req)
			if err != nil {
				wantIs(t, "acquire", err, driver.ErrUnavailable)
			}
			return err == nil
		})
		drivertest.Granted(t, other, req) // a repeat has the same reply
		drivertest.Release(t, other, req)
	})
}

// TestClusterDown checks a slot that no node serves. A client that has just read the map sees that
// itself, and sends nothing.
func TestClusterDown(t *testing.T) {
	t.Parallel()
	wantIs(t, "no node for the slot", clientError(rueidis.ErrNoSlot), driver.ErrUnavailable)
	server := cluster(t)
	e := engineOn(t, clusterClient(t, server), nil)
	defer func() { _ = e.Close() }()
	h := drivertest.Request("down", time.Minute)
	drivertest.Granted(t, e, h)
	slot := must(t, server, "CLUSTER", "KEYSLOT", "down")
	must(t, server, "CLUSTER", "DELSLOTS", slot)
	for what, call := range drivertest.Calls(t.Context(), e, "down") {
		if what == "list" {
			continue
		}
		err := call()
		if !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", what, err)
		}
	}
	must(t, server, "CLUSTER", "ADDSLOTS", slot)
	drivertest.Eventually(t, "the slot is served again", func() bool { return extend(t, e, h, time.Hour) == nil })
}

// TestLoading checks a server that loads its data, then is a replica, then a master.
func TestLoading(t *testing.T) {
	t.Parallel()
	source, server := testsvc.Redis(t, "--repl-diskless-sync-delay", "0"), testsvc.Redis(t)
	must(t, source, "EVAL", "for i = 1, 2000 do redis.call('SET', 'k' .. i, string.rep('x', 100)) end", "0")
	e := open(t, server.URL)
	must(t, server, "CONFIG", "SET", "key-load-delay", "1000") // us: two seconds in all
	must(t, server, "CONFIG", "SET", "loading-process-events-interval-bytes", "1024")
	must(t, server, "REPLICAOF", "127.0.0.1", strconv.Itoa(source.Port()))
	says := func(text string) {
		t.Helper()
		drivertest.Eventually(t, "the server says "+text, func() bool {
			_, err := e.Acquire(t.Context(), drivertest.Request("a", time.Minute))
			return errors.Is(err, driver.ErrUnavailable) && strings.Contains(err.Error(), text)
		})
	}
	says("loading its data")
	for what, call := range drivertest.Calls(t.Context(), e, "a") {
		wantIs(t, what, call(), driver.ErrUnavailable)
	}
	says("is a read-only replica")
	must(t, server, "REPLICAOF", "NO", "ONE")
	drivertest.Cycle(t, e, "a")
}
