package systest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/httplock"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/quorumlock"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/wire"
)

// serve returns two servers of the quorum, with one secret. The first server reaches the members
// over the links, and its clock is 100 ms ahead.
func (g *trio) serve(t *testing.T) []http.Handler {
	t.Helper()
	var all []http.Handler
	for _, e := range []*quorumlock.Engine{g.skewed(t, g.far, 0, 100*time.Millisecond), g.engine(t, g.near, 0)} {
		s, err := server.New(e, &server.Options{Secret: []byte(strings.Repeat("s", 32))})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// A cuttable is the path from a server to the members. While the path is cut, each member executes
// one request and its reply is lost. Further requests arrive after the path is healed.
type cuttable struct{ present atomic.Pointer[outage] }

type outage struct {
	over chan struct{}
	left [3]atomic.Int32
}

// cuttable makes the links cuttable.
func (g *trio) cuttable() *cuttable {
	c := &cuttable{}
	for i, l := range g.links {
		l.OnRequest(func(faultproxy.Request) faultproxy.Action {
			o := c.present.Load()
			switch {
			case o == nil:
				return faultproxy.Action{}
			case o.left[i].Add(-1) >= 0:
				return faultproxy.Action{Reply: faultproxy.Reset}
			}
			return faultproxy.Action{Hold: o.over}
		})
	}
	return c
}

// cut cuts the server off until heal is called.
func (c *cuttable) cut() (heal func()) {
	o := &outage{over: make(chan struct{})}
	for i := range o.left {
		o.left[i].Store(1)
	}
	c.present.Store(o)
	return func() {
		c.present.Store(nil)
		close(o.over)
	}
}

// TestRepeatAtAnotherServerOfAQuorum checks two servers of one quorum, with one secret, of which
// the first is cut off from the members for a while. A caller repeats its request at the second
// server and is granted the lock. What the first server still does about the request, when it is
// connected again, does not end the lease: no other caller gets the lock before the TTL.
// INVARIANT I5.
func TestRepeatAtAnotherServerOfAQuorum(t *testing.T) {
	g := newTrio(t)
	g.admitted(t)
	first := g.cuttable()
	var urls []string
	for _, s := range g.serve(t) {
		h := httptest.NewServer(s)
		t.Cleanup(h.Close)
		urls = append(urls, h.URL)
	}
	var repeats atomic.Int64
	rounds := soak.Count(3, 50)
	for i := range rounds {
		name, key := fmt.Sprintf("orders/%d", i), string(lockinfo.NewLeaseID())
		want := wire.LeaseRequest{Name: name, TTLMS: quorumTTL.Milliseconds()}
		heal := first.cut()
		c := &httpCaller{T: t, urls: urls, client: &http.Client{Timeout: 150 * time.Millisecond}, repeats: &repeats}
		var l wire.Lease
		status, repeated := c.ask("/v1/leases", key, want, &l)
		granted := time.Now()
		if status/100 != 2 || !repeated || l.Name != name {
			t.Fatalf("%d %+v, repeated: %t; want the lock, from the second server", status, l, repeated)
		}
		heal()
		rival := &httpCaller{T: t, urls: urls[1:], client: http.DefaultClient, repeats: &repeats}
		for time.Since(granted) < quorumTTL*7/10 {
			asked := time.Now()
			var p wire.Problem
			status, _ := rival.ask("/v1/leases", string(lockinfo.NewLeaseID()), want, &p)
			if asked.Sub(granted) < quorumTTL*7/10 && status != http.StatusConflict {
				t.Fatalf("round %d: another caller is answered %d %s after the grant of a lease of %s", i, status, time.Since(granted), quorumTTL)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	report.Row(t, "a caller repeats its request at the second server of a quorum, while the first one, whose clock is 100 ms ahead, does not hear the members",
		"the caller has the lock, and nobody else gets it before its TTL has passed", "%d of %d", rounds, rounds)
}

// TestLoadBalancerBeforeAQuorum checks the library behind a load balancer that alternates between
// two servers of a quorum, the first of which is cut off from the members for a moment. No rival
// gets the lock during a client's lease. INVARIANT I1, I5.
func TestLoadBalancerBeforeAQuorum(t *testing.T) {
	g := newTrio(t)
	near := g.admitted(t)
	first := g.cuttable()
	servers := g.serve(t)
	var asked atomic.Int64
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		servers[asked.Add(1)%2].ServeHTTP(w, r)
	}))
	defer balancer.Close()
	engine, err := httplock.Open(t.Context(), balancer.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	client, err := holdfast.New(engine, &holdfast.Options{TTL: quorumTTL, SharedEngine: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	rival, err := holdfast.New(near, &holdfast.Options{TTL: quorumTTL, SharedEngine: true})
	if err != nil {
		t.Fatal(err)
	}
	rounds := soak.Count(4, 100)
	for i := range rounds {
		name := fmt.Sprintf("balanced/%d", i)
		moment := []time.Duration{300 * time.Millisecond, 30 * time.Millisecond, 3 * time.Millisecond}[i%3]
		asked.Store(int64(1 + i/3%2)) // the first server is asked first, or the second
		time.AfterFunc(moment, first.cut())
		lease, err := client.Acquire(t.Context(), name, nil)
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		for granted := time.Now(); time.Since(granted) < quorumTTL*6/10; time.Sleep(20 * time.Millisecond) {
			other, err := rival.TryAcquire(t.Context(), name, nil)
			if err == nil && lease.Valid() {
				t.Fatalf("round %d: a rival has token %d, %s after the grant of %d, which is valid", i, other.Token(), time.Since(granted), lease.Token())
			}
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("round %d: release: %v", i, err)
		}
	}
	report.Row(t, "a client behind a load balancer before two servers of a quorum, of which the first, whose clock is 100 ms ahead, is cut off from the members for 300, 30 or 3 ms",
		"nobody else gets the lock while the client has it, and the release succeeds", "%d of %d", rounds, rounds)
}
