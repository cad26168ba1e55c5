package systest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestLookCost checks that a server looks up 128 names in one request with three Redis commands per
// name, and that this is faster than a request for each name.
func TestLookCost(t *testing.T) {
	s := newStore(t)
	server := newServer(t, s.server.URL, func(h http.Handler) http.Handler { return h })
	c := &httpCaller{T: t, urls: []string{server}, client: http.DefaultClient, repeats: new(atomic.Int64)}
	names := make([]string, driver.MaxBatch)
	for i := range names {
		names[i] = fmt.Sprintf("look/%d", i)
		if i%2 > 0 {
			continue // not held
		}
		var l wire.Lease
		if status, _ := c.ask("/v1/leases", string(lockinfo.NewLeaseID()), wire.LeaseRequest{Name: names[i], TTLMS: time.Hour.Milliseconds()}, &l); status != http.StatusCreated {
			t.Fatal(status)
		}
	}
	together := func() {
		t.Helper()
		var looked wire.Looked
		if status, _ := c.ask("/v1/locks/look", "", wire.LookRequest{Names: names}, &looked); status != http.StatusOK || len(looked.Locks) != len(names) {
			t.Fatalf("%d, %d locks, %+v", status, len(looked.Locks), looked.Failed)
		}
	}
	alone := func() {
		t.Helper()
		for _, name := range names {
			answer, err := c.client.Get(server + "/v1/locks/" + url.PathEscape(name))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
	}
	together() // loads the scripts
	commands := func() (n int) {
		for command, calls := range s.stats(t) {
			if strings.HasPrefix(command, "eval") {
				n += calls
			}
		}
		return n
	}
	before := commands()
	together()
	if n := commands() - before; n != 3*len(names) {
		t.Errorf("a look at %d names is %d commands, want %d", len(names), n, 3*len(names))
	}
	var took, tookAlone []float64
	for range 7 {
		began := time.Now()
		together()
		took = append(took, float64(time.Since(began)))
		began = time.Now()
		alone()
		tookAlone = append(tookAlone, float64(time.Since(began)))
	}
	ratio := median(tookAlone) / median(took)
	if ratio < 1.5 {
		t.Errorf("128 requests take %.1f times as long as one for 128 names", ratio)
	}
	report.Row(t, "a look at 128 names through a server on Redis", "three commands for each name; sooner than 128 requests", "%d commands; 128 requests one after the other take %.1f times as long", 3*len(names), ratio)
}
