package sim

import (
	"context"
	"math/rand/v2"
	"time"
)

// The faults that the director causes. Those below harmlessFaults void no guarantee.
const (
	faultCut = iota
	faultPause
	faultRestart
	faultDeadClient
	faultClockBack
	faultRestartEmpty
	faultFlush
	faultClockForward
	faultKinds

	harmlessFaults = faultRestartEmpty
)

// A director causes the faults of a host or of the server.
type director struct {
	plan   plan
	net    *network
	oracle *oracle
	hosts  []*host
	rand   *rand.Rand
	killed map[*host]context.CancelFunc // called when a host dies
}

// run causes faults until span has passed.
func (d *director) run(span time.Duration) {
	over := time.After(span)
	if len(d.plan.faults) == 0 {
		<-over
		return
	}
	for {
		select {
		case <-over:
			return
		case <-time.After(between(d.rand, 300*time.Millisecond, 4*time.Second)):
			d.act(pick(d.rand, d.plan.faults...))
		}
	}
}

func (d *director) act(fault int) {
	h := pick(d.rand, d.hosts...)
	span := between(d.rand, 50*time.Millisecond, 3*time.Second)
	if d.rand.Float64() < 0.2 {
		span *= 3
	}
	switch fault {
	case faultCut:
		d.net.count("cut", "%s is cut off for %v", h.name, span)
		d.cut(h, span)
	case faultPause:
		d.net.count("pause", "the server pauses for %v", span)
		d.net.mu.Lock()
		d.net.paused = time.Now().Add(span)
		d.net.mu.Unlock()
	case faultRestart, faultRestartEmpty:
		d.restart(fault == faultRestart, span)
	case faultFlush:
		d.net.count("flush", "the server forgets all keys")
		d.oracle.losesData()
		d.net.server.flush()
	case faultClockBack:
		d.net.count("clock back", "by %v", span)
		d.oracle.steps(-span)
	case faultClockForward:
		d.net.count("clock forward", "by %v", span)
		d.oracle.steps(span)
	case faultDeadClient:
		if h == d.hosts[0] || d.anyDead() {
			return // some host must survive
		}
		d.net.count("dead client", "%s dies", h.name)
		d.net.mu.Lock()
		h.dead = true
		d.net.mu.Unlock()
		d.killed[h]()
	}
}

func (d *director) cut(h *host, span time.Duration) {
	d.net.mu.Lock()
	defer d.net.mu.Unlock()
	h.cut = time.Now().Add(span)
}

func (d *director) restart(keep bool, span time.Duration) {
	if keep {
		d.net.count("restart", "the server is down for %v", span)
	} else {
		d.net.count("restart empty", "the server is down for %v and loses its data", span)
		d.oracle.losesData()
	}
	d.net.crash(span)
	d.net.server.restart(keep)
}

func (d *director) anyDead() bool {
	d.net.mu.Lock()
	defer d.net.mu.Unlock()
	for _, h := range d.hosts {
		if h.dead {
			return true
		}
	}
	return false
}
