package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
)

// A Result is the result of one run.
type Result struct {
	Seed       uint64
	Virtual    time.Duration
	Counts     map[string]int // operations
	Faults     map[string]int // injected faults
	Violations []string
	Trace      string // around the first violation
}

// Times of a run.
const (
	// settled is how long after the faults the clients may take to detect dead connections.
	settled = 8 * time.Second
	// watched is how long they continue to work after that.
	watched = 2 * time.Second
	// served is the time within which every waiter must get its turn, plus the TTL of a client
	// that died.
	served = 40 * time.Second
)

// A run is one simulation.
type run struct {
	plan    plan
	history *history
	server  *server
	net     *network
	oracle  *oracle
	hosts   []*host
	clients []*holdfast.Client
	shut    []func()
	gate    *fence.Gate
}

// Run runs the simulation of a seed. It must be called in a bubble of testing/synctest.
func Run(scripts *Scripts, seed uint64) Result {
	r := &run{plan: newPlan(seed), history: newHistory(), server: newServer(scripts)}
	h := r.history
	all := names[:]
	for i := range onceKeys {
		all = append(slices.Clone(all), onceKey(i))
	}
	r.server.offset = 26 * 365 * 24 * time.Hour // a bubble begins in the year 2000
	r.oracle = newOracle(h, r.server, all)
	r.net = newNetwork(r.server, seed, h.note)
	h.note("plan: %+v", r.plan)
	if err := r.open(); err != nil {
		h.violate("%v", err)
	} else {
		r.work(all)
	}
	for _, shut := range r.shut {
		shut()
	}
	result := Result{Seed: seed, Virtual: time.Since(h.began)}
	r.checkEmpty(all)
	h.checkExclusion()
	result.Counts, result.Faults, result.Violations = h.counts, r.net.injected, h.violations
	if len(h.violations) > 0 {
		result.Trace = h.trace()
	}
	return result
}

// open makes the clients, each on its own host.
func (r *run) open() error {
	for i := range r.plan.clients {
		host := &host{name: fmt.Sprintf("c%d", i), net: r.net}
		engine, shut, err := host.open()
		if err != nil {
			return err
		}
		r.shut = append(r.shut, shut)
		client, err := holdfast.New(&spy{engine, r.oracle, host}, &holdfast.Options{
			TTL: r.plan.ttl, RequestTimeout: r.plan.request, Cohorts: r.plan.cohorts, Holder: holdfast.Holder{Host: host.name},
		})
		if err != nil {
			return err
		}
		r.hosts, r.clients = append(r.hosts, host), append(r.clients, client)
	}
	var err error
	r.gate, err = fence.NewGate(nil)
	return err
}

// work makes all clients work, first with faults, then without.
func (r *run) work(all []string) {
	final, cancel := context.WithTimeout(context.Background(), r.plan.faulty+settled+r.plan.ttl+served)
	defer cancel()
	stop := make(chan struct{})
	var workers, others sync.WaitGroup
	r.net.mu.Lock()
	r.net.odds = r.plan.odds
	r.net.mu.Unlock()
	d := director{
		plan: r.plan, net: r.net, oracle: r.oracle, hosts: r.hosts, rand: streamOf(r.plan.seed, streamDirector),
		killed: map[*host]context.CancelFunc{},
	}
	for i, host := range r.hosts {
		ctx, end := context.WithCancel(final)
		defer end()
		d.killed[host] = end
		for n := range r.plan.workers {
			w := &worker{
				name: fmt.Sprintf("%s/%d", host.name, n), host: host, plan: &r.plan, client: r.clients[i], peers: r.peers(host),
				rand: streamOf(r.plan.seed, streamWorker+10*i+n), history: r.history, gate: r.gate,
				stop: stop, final: ctx, minToken: map[string]uint64{},
			}
			workers.Go(w.run)
		}
	}
	d.run(r.plan.faulty)
	r.net.calm(r.hosts)
	r.history.note("all is well from now on")
	time.Sleep(settled)
	over := make(chan struct{})
	others.Go(func() { r.watchWaiters(over) })
	time.Sleep(watched)
	close(stop)
	workers.Wait()
	close(over)
	others.Wait()
	r.close(all)
}

// watchWaiters finds names that are free while a worker waits for them.
func (r *run) watchWaiters(over <-chan struct{}) {
	// Places are renewed after a third of the waiter TTL, 5 s at most.
	const bound = 5*time.Second/3 + time.Second
	since := map[string]time.Time{}
	for {
		select {
		case <-over:
			return
		case <-time.After(50 * time.Millisecond):
		}
		for _, name := range names {
			r.history.mu.Lock()
			wanted := r.history.waiting[name] > 0
			r.history.mu.Unlock()
			if !wanted || !r.oracle.free(name) {
				delete(since, name)
				continue
			}
			if since[name].IsZero() {
				since[name] = time.Now()
			}
			if time.Since(since[name]) > bound {
				r.history.violate("%s has been free for %v, and workers wait for it", name, time.Since(since[name]))
				return
			}
		}
	}
}

// close closes the clients. After that, none of their leases and places may be left.
func (r *run) close(all []string) {
	for i, client := range r.clients {
		patience := 2 * time.Minute
		if r.hosts[i].dead {
			patience = time.Second
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err := client.Shutdown(ctx)
		cancel()
		_ = client.Close()
		if err != nil && !r.hosts[i].dead {
			r.history.violate("%s: close: %v", r.hosts[i].name, err)
		}
	}
	if r.history.lost {
		return // tombstones may have been lost
	}
	// Wait until requests under way have arrived.
	time.Sleep(6 * time.Second)
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.server.tickLocked()
	for _, name := range all {
		v := r.oracle.view(name)
		for id, l := range v.leases {
			r.checkLitter(name, "a lease", id, l.ends)
		}
		for _, p := range v.places {
			if p.ends > r.server.space.millis() {
				r.checkLitter(name, "a place", p.id, p.ends)
			}
		}
	}
}

// checkLitter reports a violation of INVARIANT I5, unless the owner has died.
func (r *run) checkLitter(name, what string, id holdfast.LeaseID, ends int64) {
	if owner := r.history.askedBy[id]; owner == nil || !owner.dead {
		r.history.violate("%s of %s is left, %s, for another %d ms", what, name, short(id), ends-r.server.space.millis())
	}
}

// checkEmpty checks INVARIANT I11: after a while only last tokens and records are left, and a day
// later nothing.
func (r *run) checkEmpty(all []string) {
	keys := func() []string {
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		r.server.tickLocked()
		return r.server.space.keys()
	}
	time.Sleep(r.plan.ttl + 20*time.Second + driver.TombstoneTTL)
	for _, key := range keys() {
		if !slices.ContainsFunc(all, func(name string) bool {
			return key == companions(name)+"fence:"+name || key == companions(name)+"record:"+name
		}) {
			r.history.violate("the key %s is left", key)
		}
	}
	time.Sleep(driver.TokenMemory + time.Hour)
	if left := keys(); len(left) > 0 {
		r.history.violate("keys are left a day later: %s", strings.Join(left, ", "))
	}
}
