package sim

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// A plan has the choices of a seed that are made before the run begins.
type plan struct {
	seed     uint64
	clients  int
	workers  int // of each client
	ttl      time.Duration
	request  time.Duration // Options.RequestTimeout
	faulty   time.Duration // how long there are faults
	odds     odds
	faults   []int            // the faults that the director may cause
	cohorts  bool             // Options.Cohorts
	harmless bool             // the store neither loses data nor steps its clock forward
	modes    [2]holdfast.Mode // the modes of the first two names, other than exclusive
}

// The names that workers compete for. The first has exclusive and shared leases; the plan decides
// whether the second is a semaphore.
var names = [2]string{"stock/7", "jobs"}

// onceKeys are the keys of do-once work.
const onceKeys = 3

func onceKey(i int) string { return "once/" + strconv.Itoa(i) }

// The streams of random numbers of one seed.
const (
	streamPlan     = 1 << 32
	streamDirector = 2 << 32
	streamWorker   = 3 << 32
)

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func newPlan(seed uint64) plan {
	r := streamOf(seed, streamPlan)
	sometimes := func(chance, most float64) float64 {
		if x := r.Float64() * most; r.Float64() < chance {
			return x
		}
		return 0
	}
	p := plan{
		seed: seed, cohorts: seed%2 == 1, clients: 3 + r.IntN(3), workers: 2 + r.IntN(2),
		ttl:     pick(r, 400*time.Millisecond, time.Second, time.Second, 3*time.Second, 20*time.Second),
		request: pick(r, 300*time.Millisecond, time.Second, 5*time.Second),
		faulty:  between(r, 4*time.Second, 16*time.Second),
		modes:   [2]holdfast.Mode{holdfast.Shared, pick(r, holdfast.Exclusive, holdfast.Permits(1, 1))},
	}
	if limit := 2 + r.IntN(3); p.modes[1] != holdfast.Exclusive {
		p.modes[1] = holdfast.Permits(1, limit)
	}
	p.odds = odds{
		lose: sometimes(0.5, 0.02), mute: sometimes(0.6, 0.03), replay: 0.5, twice: sometimes(0.5, 0.1),
		notice: pick(r, 0, 0, 0.2, 1), slow: sometimes(0.5, 0.2),
		slowest: pick(r, 50*time.Millisecond, p.ttl*4/10, p.ttl*12/10, 2*time.Second),
	}
	p.harmless = r.Float64() < 0.6
	for fault := range faultKinds {
		if (fault < harmlessFaults || !p.harmless) && r.Float64() < 0.6 {
			p.faults = append(p.faults, fault)
		}
	}
	return p
}
