package systest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/wire"
)

// An httpCaller acquires locks by plain HTTP requests, as programs in other languages do. It
// repeats each unanswered request at the next server.
type httpCaller struct {
	*testing.T
	urls    []string
	at      int
	client  *http.Client
	repeats *atomic.Int64
}

// ask sends a request until a server answers it, and decodes a reply with a body into v. repeated
// reports whether an earlier reply was lost.
func (c *httpCaller) ask(path, key string, body, v any) (status int, repeated bool) {
	text, err := json.Marshal(body)
	if err != nil {
		c.Fatal(err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		r, err := http.NewRequestWithContext(c.Context(), http.MethodPost, c.urls[c.at%len(c.urls)]+path, bytes.NewReader(text))
		if err != nil {
			c.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
			r.Header.Set("Prefer", "respond-async")
		}
		answer, err := c.client.Do(r)
		if err == nil {
			err = json.NewDecoder(answer.Body).Decode(v)
			answer.Body.Close()
			if answer.StatusCode == http.StatusNoContent || err == nil && answer.StatusCode < 500 {
				return answer.StatusCode, repeated
			}
		}
		repeated = true
		c.repeats.Add(1)
		c.at++
	}
	c.Error(path, "was not answered in", patience)
	return 0, repeated
}

// TestLeasesThroughServers checks callers without a client library that use two servers of one
// Redis. The servers lose ten percent of their replies, and the callers repeat each unanswered
// request at the other server. A repeat is recognized at either server: no caller locks itself out,
// gets two leases, or loses a lease. INVARIANT I1, I2, I5, I6.
func TestLeasesThroughServers(t *testing.T) {
	s := newStore(t)
	lost := &losses{}
	urls := []string{newServer(t, s.server.URL, lost.lossy), newServer(t, s.server.URL, lost.lossy)}
	const callers, names = 8, 3
	var (
		mu      sync.Mutex
		last    [names]uint64
		inside  [names]atomic.Int32
		grants  atomic.Int64
		repeats atomic.Int64
		all     sync.WaitGroup
	)
	end := time.Now().Add(soak.For(4*time.Second, time.Minute))
	for i := range callers {
		all.Go(func() {
			c := &httpCaller{T: t, urls: urls, at: i, client: &http.Client{Timeout: 700 * time.Millisecond}, repeats: &repeats}
			defer c.client.CloseIdleConnections()
			for time.Now().Before(end) && !t.Failed() {
				n, key := int(grants.Load())%names, string(lockinfo.NewLeaseID())
				name := fmt.Sprintf("n/%d", n)
				var l wire.Lease
				status, began := http.StatusAccepted, time.Now()
				for status == http.StatusAccepted && time.Since(began) < patience {
					status, _ = c.ask("/v1/leases", key, wire.LeaseRequest{Name: name, TTLMS: patience.Milliseconds(), WaitMS: 300}, &l)
				}
				if status/100 != 2 || l.Name != name { // 200 if a reply was lost, or a place became the lease
					t.Errorf("%s: %d %+v, want the lock", name, status, l)
					return
				}
				grants.Add(1)
				mu.Lock()
				if l.FencingToken <= last[n] {
					t.Errorf("%s: token %d after %d", name, l.FencingToken, last[n])
				}
				last[n] = l.FencingToken
				mu.Unlock()
				if inside[n].Add(1) > 1 {
					t.Errorf("%s has two holders", name)
				}
				var again wire.Lease
				if status, _ := c.ask("/v1/leases", key, wire.LeaseRequest{Name: name, TTLMS: patience.Milliseconds()}, &again); status != http.StatusOK || !again.Repeated || again.LeaseID != l.LeaseID || again.FencingToken != l.FencingToken {
					t.Errorf("%s: the repeat is answered %d %+v, the first %+v", name, status, again, l)
				}
				inside[n].Add(-1)
				ref := wire.LeaseRefs{LeaseRef: wire.LeaseRef{Name: name, LeaseID: l.LeaseID}}
				var p wire.Problem
				if status, repeated := c.ask("/v1/leases/release", "", ref, &p); status != http.StatusNoContent && (!repeated || p.Code != "lost") {
					t.Errorf("%s: release: %d %+v", name, status, p)
				}
				if status, _ := c.ask("/v1/leases", key, wire.LeaseRequest{Name: name}, &p); status != http.StatusGone || p.Code != "released" {
					t.Errorf("%s: after the release the same key is answered %d %+v", name, status, p)
				}
			}
		})
	}
	all.Wait()
	if lost.dropped.Load()+lost.reset.Load() == 0 || repeats.Load() == 0 {
		t.Error("no answer was lost")
	}
	report.Row(t, "callers without a library through two servers, which lose 10 % of their answers, each repeated at the other server",
		"no two holders, tokens grow, every repeat has the lease and token of the first, 410 released after the release",
		"%d grants, %d requests repeated, 0 wrong", grants.Load(), repeats.Load())
}

// TestServersPairIsTwoCommands checks that a lease and its release cost two commands through a
// server, as they do without a server.
func TestServersPairIsTwoCommands(t *testing.T) {
	s := newStore(t)
	c := &httpCaller{T: t, urls: []string{newServer(t, s.server.URL, func(h http.Handler) http.Handler { return h })}, client: http.DefaultClient, repeats: new(atomic.Int64)}
	pair := func(i int) {
		t.Helper()
		var l wire.Lease
		name := fmt.Sprintf("cost/%d", i)
		if status, _ := c.ask("/v1/leases", string(lockinfo.NewLeaseID()), wire.LeaseRequest{Name: name}, &l); status != http.StatusCreated {
			t.Fatal(status)
		}
		if status, _ := c.ask("/v1/leases/release", "", wire.LeaseRefs{LeaseRef: wire.LeaseRef{Name: name, LeaseID: l.LeaseID}}, &l); status != http.StatusNoContent {
			t.Fatal(status)
		}
	}
	scripts := func() (n int) {
		for command, calls := range s.stats(t) {
			if strings.HasPrefix(command, "eval") {
				n += calls
			}
		}
		return n
	}
	pair(0) // draws the secret, and loads the scripts
	const pairs = 50
	before := scripts()
	for i := range pairs {
		pair(1 + i)
	}
	if n := scripts() - before; n != 2*pairs {
		t.Errorf("%d pairs are %d commands, want two each", pairs, n)
	}
	if n := c.repeats.Load(); n != 0 {
		t.Errorf("%d requests were repeated", n)
	}
}
