package systest

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/redislock/member"
	"github.com/holdfast-locks/holdfast/systest/report"
)

// A distribution summarizes how long one operation took several times.
type distribution struct{ median, most time.Duration }

func distributionOf(took []time.Duration) distribution {
	slices.Sort(took)
	return distribution{took[len(took)/2], took[len(took)-1]}
}

// TestQuorumIsAsFastAsTheSlowerOfTwo checks that a dead or silent member costs no time: an acquire
// takes as long as the slower of the other two members.
func TestQuorumIsAsFastAsTheSlowerOfTwo(t *testing.T) {
	const (
		times  = 20
		margin = 5 * time.Millisecond
		// timeout is how long an acquire takes that waits for the member. It is far above what a
		// loaded machine may add.
		timeout = 700 * time.Millisecond
	)
	g := newTrio(t)
	g.admitted(t)
	e := g.engine(t, g.far, timeout)
	slower, err := member.Open("redis://" + g.far(2))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slower.Close() }()
	acquire := func() time.Duration {
		t.Helper()
		req := request("latency")
		req.TTL = quorumTTL
		start := time.Now()
		reply, err := e.Acquire(t.Context(), req)
		took := time.Since(start)
		if err != nil || reply.Outcome != driver.Granted {
			t.Fatalf("acquire: %+v, %v", reply, err)
		}
		if err := e.Release(t.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID}); err != nil {
			t.Fatalf("release: %v", err)
		}
		return took
	}
	acquire() // makes the connections
	if _, err := slower.Inspect(t.Context(), "latency"); err != nil {
		t.Fatal(err)
	}
	g.links[1].Latency(5 * time.Millisecond) // each way: round trips take 10 and 20 ms
	g.links[2].Latency(10 * time.Millisecond)
	for _, fault := range []struct {
		name     string
		do, mend func()
	}{
		{"well", func() {}, func() {}},
		{"silent", g.links[0].BlackHole, g.links[0].Heal},
		{"stopped", g.servers[0].Stop, g.servers[0].Cont},
		{"dead", g.servers[0].Kill, func() {}},
	} {
		fault.do()
		var quorum, alone []time.Duration
		for range times {
			quorum = append(quorum, acquire())
			start := time.Now()
			if _, err := slower.Inspect(t.Context(), "latency"); err != nil {
				t.Fatal(err)
			}
			alone = append(alone, time.Since(start))
		}
		q, a := distributionOf(quorum), distributionOf(alone)
		report.Row(t, "a third member that is "+fault.name, "an acquire takes no more than the slower of the others and 5 ms",
			"acquire %s (median; at most %s), the slower of the others %s (%s)", q.median, q.most, a.median, a.most)
		if q.median > a.median+margin {
			t.Errorf("%s: an acquire takes %s, the slower member %s", fault.name, q.median, a.median)
		}
		if q.most >= timeout {
			t.Errorf("%s: an acquire took %s: it waited for the member", fault.name, q.most)
		}
		fault.mend()
	}
}
