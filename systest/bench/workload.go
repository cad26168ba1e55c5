package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// A workload is a task for peers. It has either run or begin.
type workload struct {
	name, title, note string
	base              string // the peer that others are compared with
	metrics           []report.Metric
	needs             peer.Ability
	ttl               time.Duration // zero: the peers' own
	least             time.Duration // of a sample, even if -for is shorter
	slow              bool          // not run with -quick
	best              bool          // only for peers with their best settings
	scale             bool          // run with -scale only

	// run runs one trial. In each round the peers have their trials one after the other, on the
	// same server.
	run func(ctx context.Context, t *trial) (sample, error)

	// begin is for work that mostly waits: all peers do it at the same time, each with a server
	// of its own, in one trial for all rounds. It returns a function that measures one round.
	begin func(ctx context.Context, t *trial) (round, error)

	// apart gives peers with default settings rounds of their own, because their load may disturb
	// the others.
	apart bool
}

// A round measures one sample.
type round func(ctx context.Context) (sample, error)

// A sample has the figures of one measurement, by the names of the metrics.
type sample map[string]float64

// A trial is a turn of a peer at a workload.
type trial struct {
	peer   peer.Peer
	store  store
	name   string        // name of the lock, or its beginning; unique to the trial
	ttl    time.Duration // of the workload
	length time.Duration // of a measurement that counts by time
	counts bool          // count commands, too; in one trial, because they are always the same
	dir    string        // for files, until the benchmark ends

	clients []peer.Client
	crews   []*crew
}

// open returns a new client, which is closed after the trial.
func (t *trial) open(ctx context.Context) (peer.Client, error) {
	c, err := t.peer.Open(ctx, t.store.addr(), t.ttl)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	t.clients = append(t.clients, c)
	return c, nil
}

// byOne returns run of a workload that has one client.
func byOne(run func(ctx context.Context, t *trial, client peer.Client) (sample, error)) func(context.Context, *trial) (sample, error) {
	return func(ctx context.Context, t *trial) (sample, error) {
		client, err := t.open(ctx)
		if err != nil {
			return nil, err
		}
		return run(ctx, t, client)
	}
}

// prepare prepares the peer for a name, if the peer needs that.
func (t *trial) prepare(ctx context.Context, c peer.Client, name string) error {
	if p, ok := c.(peer.Preparer); ok {
		return p.Prepare(ctx, name)
	}
	return nil
}

// dismiss ends all crews.
func (t *trial) dismiss() {
	for _, c := range t.crews {
		c.kill()
	}
	t.crews = nil
}

// close closes all clients, ends all crews, and clears the store.
func (t *trial) close() error {
	t.dismiss()
	var errs []error
	for _, c := range t.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, t.store.clear())...)
}

// warmUp returns how long a trial runs before it is measured.
func (t *trial) warmUp() time.Duration { return t.length / 5 }

// works are the times for which a lock is held before it is handed on.
var works = []time.Duration{0, time.Millisecond, 20 * time.Millisecond}

// few are the numbers of concurrent goroutines in most programs.
var few = []int{1, 4, 16}

// ages are the least times that a client has waited when a lock is handed to it: some peers need
// a while to set up their watch.
var ages = []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}

// workloads returns all workloads except scales, in the order of the report.
func workloads() (all []workload) {
	all = append(all,
		latency("latency-split", "One goroutine, server and client on cores of their own", splitCores),
		latency("latency-shared", "One goroutine, server and client on one core", sharedCore))
	for _, goroutines := range few {
		all = append(all, throughput(goroutines), throughput(goroutines).split())
	}
	all = append(all, throughput(64), throughput(512))
	for _, goroutines := range callers {
		all = append(all, cluster(goroutines))
	}
	for _, work := range works {
		all = append(all, handOff(32, work), handOff(32, work).split())
	}
	for _, work := range works {
		all = append(all, handOffCrews(8, 4, work))
	}
	for _, age := range ages {
		all = append(all, strict(age))
	}
	return append(append(all,
		held(10_000, 10*time.Second, peer.Keeps), held(100_000, 30*time.Second, peer.Keeps|peer.Batches),
		recovery(0), recovery(200_000),
		loss(),
		beside(),
	), durables()...)
}

// errIdle is the error of a trial without operations.
var errIdle = errors.New("nothing was done in time")

// The metrics of several workloads.
var (
	perServer = report.Metric{Name: "server", Title: "server CPU", Unit: "µs", Better: report.Less}
	perScript = report.Metric{Name: "script", Title: "elapsed in scripts", Unit: "µs", Better: report.Less}
	perClient = report.Metric{Name: "client", Title: "client CPU", Unit: "µs", Better: report.Less}
	perAllocs = report.Metric{Name: "allocs", Title: "allocations", Better: report.Less}
	perBytes  = report.Metric{Name: "bytes", Title: "allocated", Unit: "B", Better: report.Less}
	perOuter  = report.Metric{Name: "commands", Title: "commands", Better: report.Less}
	perInner  = report.Metric{Name: "inner", Title: "inner commands", Better: report.Less}
	perCall   = report.Metric{Name: "scripts", Title: "calls of scripts", Better: report.Less}
	evenness  = report.Metric{Name: "jain", Title: "Jain", Better: report.More}
)
