package systest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A budget is the most that an operation may cost on the server: commands that its script runs,
// bytes sent for it, and processor time. The time is a multiple of what a minimal lock with a token
// takes for the same purpose.
type budget struct {
	replay
	inner float64
	bytes int
	least *budget // the budget to compare its time with; nil for a reference
	ratio float64

	took []float64 // µs of the server, in each round
}

// Rounds are interleaved and the ratio of medians counts, because other load on the machine affects
// all budgets alike. While a ratio is too high, more rounds follow: they lower only a ratio that
// was high by accident.
const (
	leastRounds = 9
	mostRounds  = 45
)

// TestServerCost checks that the server's cost of each operation does not creep up.
func TestServerCost(t *testing.T) {
	s := newStore(t)
	l := s.link(t)
	fence := &budget{replay: s.fencePairs(t), inner: 4, bytes: 300}
	pair := &budget{replay: l.pairs(t, some("pair/")), inner: 7, bytes: 540, least: fence, ratio: 2.4}
	together := &budget{replay: l.groups(t), inner: 6, bytes: 375, least: fence, ratio: 1.45}
	handOver := &budget{replay: l.handOvers(t), inner: 15, bytes: 1066, least: fence, ratio: 6.0}
	renewal := &budget{replay: l.renewals(t), inner: 2, bytes: 78, ratio: 1.5}
	renewal.least = &budget{replay: s.leastRenewals(t, renewal.replay), inner: 2, bytes: 60}
	all := []*budget{fence, pair, together, handOver, renewal.least, renewal}
	for _, b := range all {
		b.count(t, s)
	}
	for round := 0; round < leastRounds || round < mostRounds && slices.ContainsFunc(all, (*budget).exceeded); round++ {
		for _, b := range all {
			b.time(t, s)
		}
	}
	for _, b := range all {
		switch {
		case len(b.took) < leastRounds:
			t.Errorf("%s: only %d rounds went as they should", b.name, len(b.took))
		case b.least == nil:
			t.Logf("%s: %.1f µs of the server", b.name, median(b.took))
		case b.exceeded():
			t.Errorf("%s: %.1f µs of the server, %.2f × %s, want %.2f at most", b.name, median(b.took), b.over(), b.least.name, b.ratio)
		default:
			t.Logf("%s: %.1f µs of the server, %.2f × %s", b.name, median(b.took), b.over(), b.least.name)
		}
	}
}

// count compares the commands and bytes with the budget.
func (b *budget) count(t *testing.T, s *store) {
	t.Helper()
	inner, bytes := s.inner(t, b.replay), b.replay.bytes()
	t.Logf("%s: %.2f commands inside scripts, %d bytes", b.name, inner, bytes)
	if inner > b.inner+0.5 || bytes > b.bytes { // a hand-over may add some
		t.Errorf("%s: %.2f commands inside scripts and %d bytes, want %.0f and %d at most", b.name, inner, bytes, b.inner, b.bytes)
	}
}

// over returns the ratio of b's time to the reference's.
func (b *budget) over() float64 { return median(b.took) / median(b.least.took) }

// exceeded reports whether b takes too long so far, or has too few rounds.
func (b *budget) exceeded() bool {
	return len(b.took) < leastRounds || b.least != nil && b.over() > b.ratio
}

// time adds a round, unless the round had unexpected replies. That happens if the machine paused:
// then a contended lock was left free for other libraries for a moment.
func (b *budget) time(t *testing.T, s *store) {
	t.Helper()
	if !s.prepared(t, b.replay) {
		return
	}
	before := cpuTime(t, s.server)
	if s.send(t, b.measure) {
		b.took = append(b.took, (cpuTime(t, s.server)-before)*1e6/float64(b.each))
	}
}

// inner returns how many commands the scripts of a replay run per operation.
func (s *store) inner(t *testing.T, r replay) float64 {
	t.Helper()
	if !s.prepared(t, r) {
		t.Fatalf("%s: it does not go as it should", r.name)
	}
	s.do(t, "CONFIG", "RESETSTAT")
	if !s.send(t, r.measure) {
		t.Fatalf("%s: it does not go as it should", r.name)
	}
	return float64(s.inScripts(t)) / float64(r.each)
}

// Operations per replay, enough for a millisecond or more of the server.
const (
	pairs    = 500
	waiters  = 31
	circles  = 4 // rounds of a lock through all requests
	renewals = 10 * driver.MaxBatch
)

// least loads a minimal script, as the benchmark uses it.
func (s *store) least(t *testing.T, file string) (sha string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return s.script(t, string(text))
}

// fencePairs acquires locks, each with a token, and releases them.
func (s *store) fencePairs(t *testing.T) replay {
	t.Helper()
	take, release := s.least(t, "bench/peer/lua/fence.lua"), s.least(t, "bench/peer/lua/release.lua")
	r := replay{name: "the least pair with a token", each: pairs}
	value := string(lockinfo.NewLeaseID())
	for _, name := range some("fence/") {
		r.measure = append(r.measure,
			s.command(1, "EVALSHA", take, "2", name, name+":token", value, "30000"),
			s.command(1, "EVALSHA", release, "1", name, value))
	}
	return r
}

// some returns names with a prefix, one for each pair.
func some(prefix string) (names []string) {
	for i := range pairs {
		names = append(names, fmt.Sprint(prefix, i))
	}
	return names
}

// pairs acquires and releases free locks, one after the other.
func (l *link) pairs(t *testing.T, names []string) replay {
	t.Helper()
	drivertest.Cycle(t, l.engine, "warm") // now the server knows the scripts
	run := func() {
		for _, name := range names {
			drivertest.Cycle(t, l.engine, name)
		}
	}
	return replay{name: "a pair", each: len(names), measure: l.record(t, run, token, 1)}
}

// A group is the number of requests that one batch carries while earlier batches are under way.
const (
	group    = 16
	underWay = 3 // batches at once per server: mostCalls of rediscore
)

// groups acquires and releases locks in batches.
func (l *link) groups(t *testing.T) replay {
	t.Helper()
	r := replay{name: fmt.Sprintf("a pair in a group of %d", group)}
	for try := 0; r.each < pairs; try++ {
		if try > pairs {
			t.Fatal("requests do not travel together")
		}
		reqs := make([]driver.AcquireRequest, underWay+group)
		for i := range reqs {
			reqs[i] = request(fmt.Sprintf("group/%d/%d", try, i))
		}
		take := l.recordGroup(t, token, func(i int) { drivertest.Granted(t, l.engine, reqs[i]) })
		release := l.recordGroup(t, 1, func(i int) { drivertest.Release(t, l.engine, reqs[i]) })
		if carries(take, reqs[underWay:]) && carries(release, reqs[underWay:]) { // otherwise some arrived too late
			r.measure = append(r.measure, take, release)
			r.each += group
		}
	}
	return r
}

// carries reports whether a command contains the names of all requests.
func carries(c command, all []driver.AcquireRequest) bool {
	for _, req := range all {
		if !slices.Contains(c.words, req.Name) {
			return false
		}
	}
	return true
}

// recordGroup returns the batch that carries a group of requests. run makes request i; the first
// requests are held under way until all others wait for them.
func (l *link) recordGroup(t *testing.T, want int64, run func(i int)) command {
	t.Helper()
	var mu sync.Mutex
	var sent [][]string
	arrived := make(chan struct{})
	l.OnRequest(func(r faultproxy.Request) faultproxy.Action {
		if r.Command() != "EVALSHA" {
			return faultproxy.Action{}
		}
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.Words)
		if len(sent) <= underWay {
			return faultproxy.Action{Hold: arrived}
		}
		return faultproxy.Action{}
	})
	defer l.OnRequest(nil)
	requests := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(sent)
	}
	var all sync.WaitGroup
	for i := range underWay + group {
		all.Go(func() { run(i) })
		if i < underWay {
			eventually(t, "the request is under way", func() bool { return requests() > i })
		}
	}
	time.Sleep(10 * time.Millisecond) // until the others are queued
	close(arrived)
	all.Wait()
	return l.store.command(want, slices.MaxFunc(sent, func(a, b []string) int { return len(a) - len(b) })...)
}

// handOvers hands one lock over again and again: its holder releases the lock and joins the queue.
func (l *link) handOvers(t *testing.T) replay {
	t.Helper()
	all := make([]driver.AcquireRequest, 1+waiters)
	for i := range all {
		all[i] = request("handed")
		all[i].Queue, all[i].WaiterTTL = true, 30*time.Second
	}
	join := func(req driver.AcquireRequest) { drivertest.Held(t, l.engine, req) }
	turns := func() {
		for _, req := range all {
			drivertest.Release(t, l.engine, req)
			join(req)
		}
	}
	take := func() { drivertest.Granted(t, l.engine, all[0]) }
	wait := func() {
		for _, req := range all[1:] {
			join(req)
		}
	}
	r := replay{name: "a hand-over", each: circles * len(all)}
	r.prepare = append(l.record(t, take, token), l.record(t, wait, 0)...)
	turns() // now the engine knows that the name is contended
	turn := l.record(t, turns, 1, 0)
	for range circles {
		r.measure = append(r.measure, turn...)
	}
	return r
}

// renewals renews many leases in batches.
func (l *link) renewals(t *testing.T) replay {
	t.Helper()
	var batch []driver.ExtendRequest
	r := replay{name: "a renewal", each: renewals}
	for i := range renewals {
		req := request(fmt.Sprint("renewal/", i))
		r.prepare = append(r.prepare, l.record(t, func() { drivertest.Granted(t, l.engine, req) }, token)...)
		batch = append(batch, driver.ExtendRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: req.TTL})
	}
	run := func() {
		for part := range slices.Chunk(batch, driver.MaxBatch) {
			for _, err := range l.engine.Extend(t.Context(), part) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	run() // now the server knows the script
	r.measure = l.record(t, run, 1)
	return r
}

// leastRenewals renews the same leases with the minimal script.
func (s *store) leastRenewals(t *testing.T, of replay) replay {
	t.Helper()
	renew := s.least(t, "testdata/renew.lua")
	r := replay{name: "the least renewal", each: of.each, prepare: of.prepare}
	for i := 0; i < renewals; i += driver.MaxBatch {
		words, prefixes := []string{"EVALSHA", renew, strconv.Itoa(driver.MaxBatch)}, []string{"30000"}
		for j := range driver.MaxBatch {
			name := fmt.Sprint("renewal/", i+j)
			value, err := s.do(t, "GET", name).ToString()
			if err != nil {
				t.Fatal(err)
			}
			words, prefixes = append(words, name), append(prefixes, value[:33])
		}
		r.measure = append(r.measure, s.command(driver.MaxBatch, append(words, prefixes...)...))
	}
	return r
}
