package redislock

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// stat returns a number of INFO.
func stat(t *testing.T, s *testsvc.Server, section, field string) int {
	t.Helper()
	_, after, _ := strings.Cut(must(t, s, "INFO", section), field)
	digits, _, _ := strings.Cut(strings.TrimLeft(after, ":=cals"), "\r\n")
	digits, _, _ = strings.Cut(digits, ",")
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatalf("%s of %s: %v", field, s.Addr, err)
	}
	return n
}

// TestNodeTakesManySlots checks that in a Redis Cluster renewals, acquires and releases for a node
// go together, and that each has its answer while a slot moves, after it has moved, and when the
// node does not know the scripts.
func TestNodeTakesManySlots(t *testing.T) {
	t.Parallel()
	const many = 40
	c := testsvc.RedisCluster(t)
	c.Patient()
	e := open(t, c.URL)
	var reqs []driver.AcquireRequest
	for i := 0; len(reqs) < many; i++ {
		if name := fmt.Sprint("n/", i); c.Owner(name) == 0 {
			reqs = append(reqs, drivertest.Request(name, time.Minute))
		}
	}
	drivertest.Eventually(t, "the nodes are known", func() bool { return e.Route(reqs[0].Name) == e.Route(reqs[1].Name) })
	each := func(what string, run func(req driver.AcquireRequest) error) {
		t.Helper()
		var wg sync.WaitGroup
		for _, req := range reqs {
			wg.Go(func() {
				if err := run(req); err != nil {
					t.Errorf("%s: %s: %v", what, req.Name, err)
				}
			})
		}
		wg.Wait()
	}
	acquire := func(req driver.AcquireRequest) error {
		reply, err := e.Acquire(t.Context(), req)
		if err == nil && reply.Outcome != driver.Granted {
			err = fmt.Errorf("%+v", reply)
		}
		return err
	}
	release := func(req driver.AcquireRequest) error {
		return e.Release(t.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID})
	}
	var renewals []driver.ExtendRequest
	for _, req := range reqs {
		renewals = append(renewals, driver.ExtendRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: req.TTL})
	}
	renew := func(what string) {
		t.Helper()
		for i, err := range e.Extend(t.Context(), renewals) {
			if err != nil {
				t.Errorf("%s: renewal of %s: %v", what, reqs[i].Name, err)
			}
		}
	}

	each("at first", acquire)
	renew("at first") // from now on the node knows the scripts
	node := c.Masters[0]
	calls, reads := stat(t, node, "commandstats", "cmdstat_evalsha"), stat(t, node, "stats", "total_reads_processed")
	renew("together")
	if n := stat(t, node, "commandstats", "cmdstat_evalsha") - calls; n != many {
		t.Errorf("%d calls, want %d", n, many)
	}
	if n := stat(t, node, "stats", "total_reads_processed") - reads; n > many/2 { // this includes other commands
		t.Errorf("the node has read %d times for %d calls", n, many)
	}

	m := newMigration(t, c, reqs[0].Name)
	m.begin()
	m.move(10)
	renew("while a slot is moved")
	m.said("ASK")
	m.end()
	renew("when it has moved")
	each("when it has moved", release)
	each("when it has moved", acquire)
	m.said("MOVED")

	for _, s := range c.Masters {
		must(t, s, "SCRIPT", "FLUSH")
	}
	renew("without scripts")
	for _, s := range c.Masters {
		must(t, s, "SCRIPT", "FLUSH")
	}
	each("without scripts", release)
	each("without scripts", acquire)
	m.said("NOSCRIPT")
}

// TestRepliesOfANode checks that if the replies to some of several calls are lost, the others
// count, the outcome of the lost ones is unknown, and no call is sent again.
func TestRepliesOfANode(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	admin := plain(t, server)
	sha := text(t, admin, "SCRIPT LOAD", "return {redis.call('INCR', KEYS[1])}")
	p := faultproxy.New(t, server.Addr)
	client, err := rueidis.NewClient(clientOptions([]string{p.Addr()}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := newConn(client, nil)
	calls := []rediscore.Call{{SHA: sha, Keys: []string{"a"}}, {SHA: "0", Keys: []string{"b"}}, {SHA: sha, Keys: []string{"c"}}, {SHA: sha, Keys: []string{"d"}}}
	for i, lost := range []string{"", "c", ""} {
		p.OnRequest(func(r faultproxy.Request) faultproxy.Action {
			if lost != "" && r.Has(lost) {
				return faultproxy.Action{Reply: faultproxy.Reset, ReplyDelay: 50 * time.Millisecond} // the first replies arrive
			}
			return faultproxy.Action{}
		})
		replies := c.EvalEach(t.Context(), calls)
		if got := fmt.Sprint(replies[0].Value, replies[0].Err); got != fmt.Sprintf("[%d] <nil>", i+1) {
			t.Errorf("the first: %s", got)
		}
		if !strings.HasPrefix(rediscore.ServerSays(replies[1].Err), "NOSCRIPT") {
			t.Errorf("an unknown script: %v", replies[1].Err)
		}
		for _, r := range replies[2:] {
			if (r.Err != nil) != (lost != "") || driver.Definite(r.Err) {
				t.Errorf("round %d: %v, %v", i, r.Value, r.Err)
			}
		}
	}
	for _, key := range []string{"a", "c", "d"} {
		if n := text(t, admin, "GET", key); n != "3" {
			t.Errorf("%s was carried out %s times in 3 rounds", key, n)
		}
	}
}
