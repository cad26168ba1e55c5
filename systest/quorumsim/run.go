package quorumsim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

const (
	maxTTL     = 3 * time.Second
	clientSkew = 1500 * time.Millisecond
	memberSkew = 150 * time.Millisecond
	faulty     = 1500 * time.Millisecond // how long there are faults
)

var names = [2]string{"a", "b"}

// A Result is the result of one run.
type Result struct {
	Seed       uint64
	Violations []string
	Granted    int
	Failed     int // attempts that ended without a lease
	Faults     map[string]int
}

// A run is one simulation.
type run struct {
	ctx     context.Context
	members []*mem.Member
	hosts   []*host // of the clients
	others  []*host // of the clients' second engines
	clients []*holdfast.Client
	stop    time.Time
	forgets bool // members lose their memory

	mu      sync.Mutex // guards the rest
	r       *rand.Rand
	result  Result
	highest map[string]uint64 // the greatest token of each name, by the correct clock
	leases  map[string][]tenure
}

// A tenure is a lease that was granted.
type tenure struct {
	*holdfast.Lease
	host  int
	token uint64 // by the correct clock
}

// Run runs the simulation of a seed. It must be called in a bubble of testing/synctest.
func Run(ctx context.Context, seed uint64) Result {
	s := &run{
		ctx: ctx, r: rand.New(rand.NewPCG(seed, 1)), stop: time.Now().Add(faulty),
		result:  Result{Seed: seed, Faults: map[string]int{}},
		highest: map[string]uint64{}, leases: map[string][]tenure{},
	}
	s.forgets = s.r.IntN(3) == 0
	s.begin()
	var all sync.WaitGroup
	for i := range s.clients {
		for range 1 + s.roll(2) {
			all.Go(func() { s.work(i) })
		}
	}
	if s.forgets {
		all.Go(s.forget)
	}
	all.Wait()
	s.end()
	return s.result
}

// begin makes members and clients.
func (s *run) begin() {
	var offs []time.Duration
	for range 3 + 2*s.roll(2) {
		m := mem.NewMember()
		_ = m.Admit(s.ctx) // cannot fail in memory
		s.members, offs = append(s.members, m), append(offs, s.skew(memberSkew))
	}
	for i := range 2 + s.roll(3) {
		h, first := s.engine(i, offs)
		var engine driver.Engine = first
		if s.roll(2) == 0 {
			h2, second := s.engine(i+100, offs)
			s.others = append(s.others, h2)
			engine = &balanced{Engine: first, second: second, ahead: uint64((h2.ahead - h.ahead).Microseconds()), other: func() bool { return s.roll(2) == 0 }}
		}
		c, err := holdfast.New(engine, &holdfast.Options{TTL: s.pick(500, 1000, 3000), RequestTimeout: s.pick(300, 1000, 5000)})
		if err != nil {
			panic(err)
		}
		s.hosts, s.clients = append(s.hosts, h), append(s.clients, c)
	}
}

// engine returns an engine on host i, a host of its own.
func (s *run) engine(i int, offs []time.Duration) (*host, *quorumlock.Engine) {
	h := &host{ahead: s.skew(clientSkew), r: rand.New(rand.NewPCG(s.result.Seed, uint64(i+2))), hits: map[fate]int{}}
	var ways []driver.Member
	for n, m := range s.members {
		ways = append(ways, newWay(h, n, m, offs[n]))
	}
	engine, err := quorumlock.New(ways, &quorumlock.Options{MaxTTL: maxTTL})
	if err != nil {
		panic(err)
	}
	return h, engine
}

// ahead returns the difference between the correct clock's tokens and a client's.
func (s *run) ahead(i int) uint64 { return uint64(s.hosts[i].ahead.Microseconds()) }

func (s *run) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.IntN(n)
}

// skew returns a random error of a clock, which is 0 for a third of them.
func (s *run) skew(most time.Duration) time.Duration {
	if s.roll(3) == 0 {
		return 0
	}
	// It is even, as tokens are, so that all hosts see the same token of a lease.
	return 2*time.Duration(s.roll(int(most.Microseconds())))*time.Microsecond - most
}

func (s *run) pick(ms ...int) time.Duration {
	return time.Duration(ms[s.roll(len(ms))]) * time.Millisecond
}

func (s *run) ms(most int) time.Duration { return time.Duration(s.roll(1000*most)) * time.Microsecond }

// forget makes members lose their memory at random times.
func (s *run) forget() {
	for time.Now().Before(s.stop) {
		time.Sleep(s.ms(1000))
		s.members[s.roll(len(s.members))].Restart()
	}
}

// work acquires locks until the faults end.
func (s *run) work(i int) {
	for time.Now().Before(s.stop) {
		s.turn(i)
		time.Sleep(s.ms(20))
	}
}

// turn acquires a lock once.
func (s *run) turn(i int) {
	c, name, opts := s.clients[i], names[s.roll(len(names))], &holdfast.AcquireOptions{}
	ctx, cancel := s.ctx, func() {}
	acquire := c.Acquire
	switch s.roll(3) {
	case 0:
		acquire = c.TryAcquire
	case 1:
		opts.MaxWait = time.Millisecond + s.ms(400)
	case 2:
		ctx, cancel = context.WithTimeout(ctx, s.ms(100))
	}
	defer cancel()
	if s.roll(5) == 0 {
		opts.MinToken = s.minToken() - s.ahead(i)
	}
	s.mu.Lock()
	before := s.highest[name]
	s.mu.Unlock()
	lease, err := acquire(ctx, name, opts)
	if err != nil {
		s.mu.Lock()
		s.result.Failed++
		s.mu.Unlock()
		return
	}
	s.took(tenure{lease, i, lease.Token() + s.ahead(i)}, before)
	time.Sleep(s.ms(1 + 400*(s.roll(4)/3) + 20*s.roll(2)))
	ctx, cancel = context.WithTimeout(s.ctx, s.ms(200)+time.Second*time.Duration(s.roll(2)))
	defer cancel()
	_ = lease.Release(ctx) // if it fails, the client retries in the background
}

// minToken returns a token that a resource may have seen, by the correct clock: a little ahead of
// it, and at times far ahead, unless members forget.
func (s *run) minToken() uint64 {
	lead := s.ms(800)
	if !s.forgets && s.roll(10) == 0 {
		lead = s.ms(600_000)
	}
	return uint64(time.Now().Add(lead).UnixMicro())
}

// took checks a granted lease. before is the greatest token granted before its request.
func (s *run) took(t tenure, before uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.Granted++
	name := t.Name()
	if t.token <= before {
		s.violation("%s: client %d has token %d, after %d", name, t.host, t.token, before)
	}
	s.highest[name] = max(s.highest[name], t.token)
	others := s.leases[name][:0]
	for _, other := range s.leases[name] {
		if other.token == t.token {
			s.violation("%s: clients %d and %d both have token %d", name, other.host, t.host, t.token)
		}
		if other.Valid() {
			others = append(others, other)
			if t.Valid() {
				s.violation("%s: clients %d and %d hold it at once, with tokens %d and %d", name, other.host, t.host, other.token, t.token)
			}
		}
	}
	s.leases[name] = append(others, t)
}

func (s *run) violation(format string, args ...any) {
	s.result.Violations = append(s.result.Violations, fmt.Sprintf(format, args...))
}

// end ends the faults and checks the final state.
func (s *run) end() {
	for _, h := range slices.Concat(s.hosts, s.others) {
		h.mu.Lock()
		h.calm = true
		for f, n := range h.hits {
			s.result.Faults[[fates]string{"none", "reset", "refused", "muted", "late", "twice"}[f]] += n
		}
		h.mu.Unlock()
	}
	time.Sleep(2 * time.Minute) // the last leases, the last clean-up
	lease, err := s.clients[0].TryAcquire(s.ctx, names[0], nil)
	if err == nil {
		_ = lease.Release(s.ctx)
	}
	if err != nil || s.forgets { // a member without its memory notices that now, and is in quarantine
		time.Sleep(time.Minute)
	}
	for i, c := range s.clients {
		for _, name := range names {
			before := s.highest[name]
			lease, err := c.TryAcquire(s.ctx, name, nil)
			if err != nil {
				s.violation("in the end client %d does not get %s: %v", i, name, err)
				continue
			}
			s.took(tenure{lease, i, lease.Token() + s.ahead(i)}, before)
			if err := lease.Release(s.ctx); err != nil {
				s.violation("in the end: %v", err)
			}
			time.Sleep(time.Second)
		}
	}
	time.Sleep(time.Minute)
	for n, m := range s.members {
		for _, name := range names {
			if lock, err := m.Inspect(s.ctx, name); err != nil || len(lock.Holders) > 0 {
				s.violation("in the end member %d has %+v of %s, %v", n+1, lock.Holders, name, err)
			}
		}
	}
	for _, c := range s.clients {
		if err := c.Close(); err != nil {
			s.violation("close: %v", err)
		}
	}
	time.Sleep(time.Second)
}
