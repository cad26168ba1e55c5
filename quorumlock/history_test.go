package quorumlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

// A tenure is one lease, as its holder saw it.
type tenure struct {
	client  int
	token   uint64
	asked   time.Time // before the request was sent
	granted time.Time // when the reply arrived
	trusted time.Time // the holder trusts it until then at the latest
}

// A history has the tenures of all clients.
type history struct {
	mu      sync.Mutex
	tenures []tenure
	errors  map[string]int
}

// check returns the violations: two tenures with one token, with tokens against their order in
// time, or at the same time.
func (h *history) check() []string {
	var wrong []string
	for i, a := range h.tenures {
		for _, b := range h.tenures[:i] {
			switch {
			case a.token == b.token:
				wrong = append(wrong, fmt.Sprintf("clients %d and %d both had token %d", a.client, b.client, a.token))
			case a.granted.Before(b.asked) && a.token > b.token, b.granted.Before(a.asked) && b.token > a.token:
				wrong = append(wrong, fmt.Sprintf("tokens %d and %d are against the order of time", a.token, b.token))
			case a.granted.Before(b.trusted) && b.granted.Before(a.trusted):
				wrong = append(wrong, fmt.Sprintf("tokens %d and %d were trusted at the same time", a.token, b.token))
			}
		}
	}
	return wrong
}

// trust returns how long a lease may be trusted whose request was sent at sent.
func trust(sent time.Time, ttl time.Duration) time.Time {
	return sent.Add(ttl - ttl/10 - 2*time.Millisecond)
}

// A storm is a run of clients on members and links that fail at random.
type storm struct {
	*testing.T
	history
	random *rand.Rand // guarded by history.mu, because the links use it
	stores []*mem.Member
	stop   time.Time
}

func (s *storm) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

func (s *storm) ms(n int) time.Duration { return time.Duration(s.roll(n)) * time.Millisecond }

// client acquires, extends and releases until the storm ends.
func (s *storm) client(id int, r *rig) {
	for time.Now().Before(s.stop) {
		req := ask("a")
		req.TTL = 2 * time.Second
		ctx, cancel := context.WithTimeout(s.Context(), 50*time.Millisecond+s.ms(2000))
		t := tenure{client: id, asked: time.Now()}
		reply, err := r.Acquire(ctx, req)
		cancel()
		t.granted = time.Now()
		if err != nil {
			s.note(err)
		}
		if err == nil && reply.Outcome == driver.Granted {
			t.token, t.trusted = reply.Token, trust(t.asked, req.TTL)
			s.hold(r, req, &t)
			s.mu.Lock()
			s.tenures = append(s.tenures, t)
			s.mu.Unlock()
		}
		time.Sleep(s.ms(300))
	}
}

// note counts errors by kind, to show that the storm caused some.
func (s *storm) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, driver.ErrUnavailable):
		s.errors["unavailable"]++
	case errors.Is(err, context.DeadlineExceeded):
		s.errors["context"]++
	case errors.Is(err, driver.ErrLost):
		s.errors["lost"]++
	default:
		s.errors["unknown"]++
	}
}

// hold keeps a lease for a while, and usually releases it.
func (s *storm) hold(r *rig, req driver.AcquireRequest, t *tenure) {
	for s.roll(3) > 0 {
		time.Sleep(min(s.ms(900), time.Until(t.trusted)))
		sent := time.Now()
		if !sent.Before(t.trusted) {
			return // it has ended; no further request is sent for it
		}
		err := r.extend(held{AcquireRequest: req})
		switch {
		case err == nil && time.Now().Before(t.trusted):
			t.trusted = trust(sent, req.TTL)
		case errors.Is(err, driver.ErrLost):
			s.note(err)
			t.trusted = sent
			return
		case err != nil:
			s.note(err)
		}
	}
	if now := time.Now(); s.roll(5) > 0 && now.Before(t.trusted) {
		t.trusted = now // the holder trusts it until the release is sent
		if err := r.release(held{AcquireRequest: req}); err != nil {
			s.note(err)
		}
	}
}

// weather changes the links and the members at random.
func (s *storm) weather(rigs []*rig) {
	for time.Now().Before(s.stop) {
		time.Sleep(s.ms(200))
		r := rigs[s.roll(len(rigs))]
		l := r.links[s.roll(len(r.links))]
		switch roll := s.roll(100); {
		case roll < 70:
			l.deliver() // up
		case roll < 98:
			l.set([]linkState{down, silent, deaf, holding}[roll%4])
		default:
			s.stores[s.roll(len(s.stores))].Restart()
		}
	}
}

// TestHistories checks that under any faults tokens are distinct and grow in time, and that no two
// holders trust their leases at once. Afterwards the lock is free, and no proposal remains.
func TestHistories(t *testing.T) {
	const seeds = 40
	total, all := 0, map[string]int{}
	for seed := range uint64(seeds) {
		virtual(t, func(t *testing.T) {
			s := &storm{T: t, random: rand.New(rand.NewPCG(seed, 2)), history: history{errors: map[string]int{}}}
			s.stores = stores(t, 3+2*s.roll(2))
			s.stop = time.Now().Add(time.Minute)
			var rigs []*rig
			for range 3 + s.roll(3) {
				rigs = append(rigs, s.rig())
			}
			var wg sync.WaitGroup
			for i, r := range rigs {
				wg.Go(func() { s.client(i, r) })
			}
			wg.Go(func() { s.weather(rigs) })
			wg.Wait()
			for _, wrong := range s.check() {
				t.Errorf("seed %d: %s", seed, wrong)
			}
			s.calm(rigs)
			total += len(s.tenures)
			for what, n := range s.errors {
				all[what] += n
			}
		})
	}
	t.Logf("%d tenures; errors: %v", total, all)
	if total < 10*seeds || len(all) < 4 {
		t.Errorf("%d tenures in %d runs, and errors %v: that tested nothing", total, seeds, all)
	}
}

// rig returns an engine with links of random speed and usually a wrong clock. Its MaxTTL is short,
// so that members leave their quarantine.
func (s *storm) rig() *rig {
	r := newRigWith(s.T, s.stores, &quorumlock.Options{MaxTTL: 3 * time.Second})
	r.SetClock(time.Duration(s.roll(7200)-3600) * time.Second)
	for _, l := range r.links {
		base := s.roll(20)
		l.vary(func() time.Duration { return time.Duration(base+s.roll(10)) * time.Millisecond })
	}
	return r
}

// calm ends all faults, and checks that the lock can be acquired and that no proposal remains.
func (s *storm) calm(rigs []*rig) {
	for _, r := range rigs {
		for _, l := range r.links {
			l.deliver()
		}
	}
	req := ask("a")
	req.TTL = time.Second
	_, _ = rigs[0].Acquire(s.Context(), req) // the quarantine of a member begins with the first request after its restart
	settle(2 * time.Minute)                  // for the last leases, the last quarantine and the last cleanup
	req = ask("a")
	req.TTL = time.Second
	h := rigs[0].grant(req)
	last := slices.MaxFunc(s.tenures, func(a, b tenure) int { return int(int64(a.token) - int64(b.token)) })
	if h.token <= last.token {
		s.Errorf("token %d after %d", h.token, last.token)
	}
	rigs[0].mustRelease(h)
	settle(time.Second)
	rigs[0].free("a")
}

// TestCheckSeesViolations checks that check finds violations.
func TestCheckSeesViolations(t *testing.T) {
	at := func(seconds ...int) (times []time.Time) {
		for _, s := range seconds {
			times = append(times, time.Unix(int64(s), 0))
		}
		return times
	}
	first := at(0, 1, 5)
	for what, second := range map[string]tenure{
		"the same token": {token: 10, asked: at(6)[0], granted: at(7)[0], trusted: at(9)[0]},
		"a smaller one":  {token: 8, asked: at(6)[0], granted: at(7)[0], trusted: at(9)[0]},
		"an overlap":     {token: 12, asked: at(2)[0], granted: at(3)[0], trusted: at(9)[0]},
	} {
		h := history{tenures: []tenure{{token: 10, asked: first[0], granted: first[1], trusted: first[2]}, second}}
		if len(h.check()) != 1 {
			t.Errorf("%s: the check finds %q", what, h.check())
		}
	}
}
