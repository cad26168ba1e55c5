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
	base              string // the peer that all are compared with
	metrics           []report.Metric
	needs             peer.Ability
	ttl               time.Duration // zero: the peers' own
	least             time.Duration // of a sample, whatever the flag -for
	slow              bool          // it is not in the quick form
	best              bool          // only for peers with their best settings
	scale             bool          // it is done with -scale, and only then

	// run is one trial. In each round the peers have theirs one after the other, on
	// the same server.
	run func(ctx context.Context, t *trial) (sample, error)

	// begin is for work that mostly waits: all peers do it at the same time, each with a
	// server of its own, in one trial for all rounds. It returns a function that measures
	// one round.
	begin func(ctx context.Context, t *trial) (round, error)

	// apart gives peers with default settings rounds of their own: they may use so much
	// that they would disturb the others.
	apart bool
}

// A round measures one sample.
type round func(ctx context.Context) (sample, error)

// A sample is what was measured once, by the names of the metrics.
type sample map[string]float64

// A trial is a turn of a peer at a workload.
type trial struct {
	peer   peer.Peer
	store  store
	name   string        // of the lock, or how its name begins; no other trial has it
	ttl    time.Duration // of the workload
	length time.Duration // for which it goes on where it counts by time
	counts bool          // it counts commands, too; once, because they are always the same
	dir    string        // for files, until the benchmark ends

	clients []peer.Client
	crews   []*crew
}

// open returns a client of its own, which is closed after the trial.
func (t *trial) open(ctx context.Context) (peer.Client, error) {
	c, err := t.peer.Open(ctx, t.store.addr(), t.ttl)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	t.clients = append(t.clients, c)
	return c, nil
}

// prepare tells the peer of a name, if it wants to know.
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

// close closes all clients, ends all crews, and forgets what they have left.
func (t *trial) close() (err error) {
	t.dismiss()
	for _, c := range t.clients {
		if e := c.Close(); err == nil {
			err = e
		}
	}
	if e := t.store.clear(); err == nil {
		err = e
	}
	return err
}

// warmUp is how long a trial goes on before it is measured.
func (t *trial) warmUp() time.Duration { return t.length / 5 }

// works are for how long a lock is held before it is handed on.
var works = []time.Duration{0, time.Millisecond, 20 * time.Millisecond}

// few are the numbers of goroutines that most programs have at work.
var few = []int{1, 4, 16}

// ages are for how long a client has waited, at least, when a lock is handed to it: some
// need a while until their watch is set up.
var ages = []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}

// workloads returns all of them, in the order of the report.
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

// errIdle is a trial in which nothing was done.
var errIdle = errors.New("nothing was done in time")

// The metrics that several workloads have.
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
