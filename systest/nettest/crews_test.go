//go:build soaknet && linux

package nettest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/quorumlock"
	"github.com/holdfast-locks/holdfast/redislock/member"
	"github.com/holdfast-locks/holdfast/systest/check"
	"github.com/holdfast-locks/holdfast/systest/net"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// A job is what the clients of a crew do with their locks.
type job string

const (
	takeTurns job = "take turns" // Workers take locks again and again, each for up to Hold
	heedless  job = "heedless"   // the same for the whole of Hold, even after the lease ended, as no client may
	holdAll   job = "hold all"   // hold Workers locks until they are lost, or the crew ends
)

// A tenure is what a crew reports of a lease, at its begin and at its end.
type tenure struct {
	check.Span
	Lost string // why the lease was lost; "" if it was not
}

// openStore opens a store. The URL of a quorum has its members separated by commas.
func openStore(ctx context.Context, url string) (driver.Engine, error) {
	hosts, ok := strings.CutPrefix(url, "quorum+redis://")
	if !ok {
		return traffic.Open(ctx, traffic.Redislock, url)
	}
	var members []driver.Member
	for host := range strings.SplitSeq(hosts, ",") {
		m, err := member.Open("redis://" + host)
		if err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return quorumlock.New(members, &quorumlock.Options{CloseMembers: true})
}

// crewJob returns the function of a job.
func crewJob(what job) func(context.Context, traffic.Job) (any, error) {
	return func(ctx context.Context, j traffic.Job) (any, error) {
		engine, err := openStore(ctx, j.Store)
		if err != nil {
			return nil, err
		}
		client, err := holdfast.New(engine, &holdfast.Options{TTL: j.TTL})
		if err != nil {
			return nil, err
		}
		var all sync.WaitGroup
		for i := range j.Workers {
			w := &worker{client: client, job: j, what: what, rand: rand.New(rand.NewPCG(j.Seed, uint64(i)))}
			all.Go(func() { w.run(ctx, i) })
		}
		all.Wait()
		return tenure{}, nil // the end of the process releases the rest
	}
}

// A worker is one goroutine of a crew.
type worker struct {
	client *holdfast.Client
	job    traffic.Job
	what   job
	rand   *rand.Rand
}

func (w *worker) run(ctx context.Context, number int) {
	for ctx.Err() == nil {
		n := number
		if w.what != holdAll {
			n = w.rand.IntN(w.job.Names)
		}
		lease, err := w.client.Acquire(ctx, fmt.Sprintf("%s/%d", w.job.Name, n), nil)
		if err != nil {
			// These tests disturb the network, so errors are expected.
			pause(ctx, 20*time.Millisecond)
			continue
		}
		w.work(ctx, lease)
	}
}

// work works under a lease, and releases it.
func (w *worker) work(ctx context.Context, lease *holdfast.Lease) {
	seen := tenure{Span: check.SpanOf(lease)}
	w.job.Out(seen)
	switch w.what {
	case holdAll:
		<-lease.Context().Done()
	case takeTurns:
		pause(lease.Context(), time.Duration(w.rand.Int64N(int64(w.job.Hold)))+1)
	case heedless:
		pause(ctx, w.job.Hold) // always the whole of Hold, so that the lease ends before
	}
	if seen.End = check.ValidUntil(lease); w.what == heedless {
		seen.End = time.Now().UnixNano()
	}
	if cause := context.Cause(lease.Context()); cause != nil && ctx.Err() == nil {
		seen.Lost = cause.Error()
	}
	w.job.Out(seen)
	_ = lease.Release(context.WithoutCancel(ctx))
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// A diary records the reports of crews.
type diary struct {
	mu      sync.Mutex // guards tenures
	tenures map[holdfast.LeaseID]tenure
	hosts   map[holdfast.LeaseID]string
}

// crewOn starts a crew on a host and records its reports in the diary.
func (d *diary) crewOn(t *testing.T, h *net.Host, what job, j traffic.Job) *traffic.Crew {
	t.Helper()
	j.Job, j.Seed = string(what), rand.Uint64()
	if j.Name == "" {
		j.Name = "lock"
	}
	c := traffic.StartBy(t, h.Spawn, j)
	c.Begin()
	done := make(chan struct{})
	go func() { // ends with the crew
		defer close(done)
		c.Follow(func(report []byte) bool {
			var seen tenure
			if json.Unmarshal(report, &seen) == nil && seen.Start != 0 {
				d.note(h.Name, seen)
			}
			return true
		})
	}()
	return c
}

func (d *diary) note(host string, seen tenure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tenures == nil {
		d.tenures, d.hosts = map[holdfast.LeaseID]tenure{}, map[holdfast.LeaseID]string{}
	}
	d.tenures[seen.LeaseID], d.hosts[seen.LeaseID] = seen, host
}

// all returns the tenures by host. A tenure that lasts has no end yet.
func (d *diary) all() map[string][]tenure {
	d.mu.Lock()
	defer d.mu.Unlock()
	hosts := map[string][]tenure{}
	for id, seen := range d.tenures {
		hosts[d.hosts[id]] = append(hosts[d.hosts[id]], seen)
	}
	return hosts
}

// verdict judges the diary. Tenures that last count as ending now.
func (d *diary) verdict() check.SpanVerdict {
	var spans check.Spans
	for host, tenures := range d.all() {
		for _, seen := range tenures {
			spans.Note(host, seen.Span)
		}
		spans.Died(host)
	}
	return spans.Judge()
}

// lost returns the reason for each lost lease.
func (d *diary) lost() (why []string) {
	for host, tenures := range d.all() {
		for _, seen := range tenures {
			if seen.Lost != "" {
				why = append(why, host+": "+seen.Name+": "+seen.Lost)
			}
		}
	}
	return why
}

// first returns the first tenure that began on a host after an instant. If host is "", it searches
// all hosts.
func (d *diary) first(host string, after time.Time) (first tenure, ok bool) {
	for at, tenures := range d.all() {
		for _, seen := range tenures {
			if (host == "" || at == host) && seen.Start > after.UnixNano() && (!ok || seen.Start < first.Start) {
				first, ok = seen, true
			}
		}
	}
	return first, ok
}

// held returns how many leases a host has.
func (d *diary) held(host string) (n int) {
	for _, seen := range d.all()[host] {
		if seen.End == 0 {
			n++
		}
	}
	return n
}

// gap returns the longest time between two instants in which no lease of one name began.
func (d *diary) gap(from, to time.Time) (longest time.Duration) {
	begun := map[string][]int64{}
	for _, tenures := range d.all() {
		for _, seen := range tenures {
			if seen.Start >= from.UnixNano() && seen.Start <= to.UnixNano() {
				begun[seen.Name] = append(begun[seen.Name], seen.Start)
			}
		}
	}
	for _, starts := range begun {
		starts = append(starts, from.UnixNano(), to.UnixNano())
		slices.Sort(starts)
		for i := range starts[1:] {
			longest = max(longest, time.Duration(starts[i+1]-starts[i]))
		}
	}
	return longest
}

// want fails the test for each overlap, and for each token that is not greater than those before.
func (d *diary) want(t *testing.T) check.SpanVerdict {
	t.Helper()
	v := d.verdict()
	for _, err := range v.Errors {
		t.Error(err)
	}
	if v.Leases == 0 {
		t.Error("nobody has held anything")
	}
	return v
}
