package serve

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/observe"
)

func TestText(t *testing.T) {
	t.Parallel()
	counter := family{name: "requests_total", help: "Requests."}
	histogram := family{name: "wait_seconds", help: "Waits.", bounds: []float64{.5, 1}}
	p := &page{}
	counter.write(p)
	histogram.write(p)
	if p.Len() > 0 {
		t.Errorf("nothing was counted, and it writes %s", p)
	}
	counter.add(labels("route", "b", "status", "200"), 2)
	counter.add(labels("route", "a\\\"\nz", "status", "404"), 0)
	counter.add(labels("route", "b", "status", "200"), 1)
	for _, v := range []float64{.25, .5, .75, 1e6} {
		histogram.observe("", v)
	}
	histogram.observe(labels("mode", "shared"), 1)
	counter.write(p)
	histogram.write(p)
	p.gauge("ready", "Ready.", 1)
	const want = `# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{route="a\\\"\nz",status="404"} 0
requests_total{route="b",status="200"} 3
# HELP wait_seconds Waits.
# TYPE wait_seconds histogram
wait_seconds_bucket{le="0.5"} 2
wait_seconds_bucket{le="1"} 3
wait_seconds_bucket{le="+Inf"} 4
wait_seconds_sum 1.0000015e+06
wait_seconds_count 4
wait_seconds_bucket{mode="shared",le="0.5"} 0
wait_seconds_bucket{mode="shared",le="1"} 1
wait_seconds_bucket{mode="shared",le="+Inf"} 1
wait_seconds_sum{mode="shared"} 1
wait_seconds_count{mode="shared"} 1
# HELP ready Ready.
# TYPE ready gauge
ready 1
`
	if got := p.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestEvents checks that events of several leases are counted while the page is read.
func TestEvents(t *testing.T) {
	t.Parallel()
	e := newEvents()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			key := lockinfo.LeaseID(strings.Repeat(string(rune('a'+i)), 32))
			e.observe(holdfast.Event{Kind: observe.Acquired, Key: key, Time: time.Now(), Waited: 2 * time.Millisecond})
			e.observe(holdfast.Event{Kind: observe.RenewFailed, Key: key, Err: errors.New("no answer")})
			e.write(&page{})
			if i > 0 {
				e.observe(holdfast.Event{Kind: observe.Released, Key: key, Held: time.Second})
			}
		})
	}
	all.Wait()
	p := &page{}
	e.write(p)
	for _, line := range []string{
		`holdfast_acquires_total{mode="exclusive",result="acquired"} 8`,
		`holdfast_acquires_total{mode="shared",result="acquired"} 0`,
		`holdfast_renewals_total{outcome="failed"} 8`,
		`holdfast_renewals_total{outcome="renewed"} 0`,
		`holdfast_releases_total{outcome="released"} 7`,
		`holdfast_breaks_total 0`,
		`holdfast_acquire_duration_seconds_bucket{mode="exclusive",le="0.001"} 0`,
		`holdfast_acquire_duration_seconds_bucket{mode="exclusive",le="0.0025"} 8`,
		`holdfast_hold_duration_seconds_sum{mode="exclusive"} 7`,
		`holdfast_held{mode="exclusive"} 1`,
		`holdfast_held{mode="semaphore"} 0`,
		`holdfast_oldest_wait_seconds{mode="exclusive"} 0`,
	} {
		if !strings.Contains(p.String(), line+"\n") {
			t.Errorf("%s is not in\n%s", line, p)
		}
	}
}
