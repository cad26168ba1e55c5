package faultproxy

import (
	"math/rand/v2"
	"net"
	"time"
)

// A spread is a range of times from which a random one is drawn.
type spread struct {
	least, most time.Duration
	seed        uint64
}

// draw returns a random time of the range.
func (s *spread) draw(r *rand.Rand) time.Duration {
	return s.least + time.Duration(r.Int64N(int64(s.most-s.least)+1))
}

// A slicing is how streams are cut.
type slicing struct {
	most  int           // bytes of one piece
	pause time.Duration // between two pieces, at most
	seed  uint64
}

// maxPieces bounds the pieces of one message, so that a long one is not held up
// for ever.
const maxPieces = 64

// Jitter makes everything that is read from now on arrive later by a random
// time between least and most, drawn anew for each message; 0 and 0 end it. A
// stream keeps its order: a delayed part delays all later parts.
func (p *Proxy) Jitter(least, most time.Duration, seed uint64) {
	if most == 0 {
		p.jitter.Store(nil)
		return
	}
	p.jitter.Store(&spread{least, most, seed})
}

// Reorder gives each connection a latency of its own from now on, random and
// at most this long, in each direction: what is sent later on another
// connection may arrive earlier. A stream never changes its order. 0 ends it.
func (p *Proxy) Reorder(most time.Duration, seed uint64) {
	if most == 0 {
		p.reorder.Store(nil)
		return
	}
	p.reorder.Store(&spread{0, most, seed})
}

// Slice cuts everything that arrives from now on into pieces of random length,
// at most so many bytes each, with a random pause of less than that between two,
// or none; the last of many pieces of a message is as long as the rest. 0 bytes
// end it.
func (p *Proxy) Slice(most int, pause time.Duration, seed uint64) {
	if most == 0 {
		p.slice.Store(nil)
		return
	}
	p.slice.Store(&slicing{most, pause, seed})
}

// BlackHoleConn makes one connection, of the number in Request.Conn, silent in
// both directions, without a sign: what is on the wire or sent from now on is
// lost, until the client gives up and closes it. The others live. It reports
// whether there is such a connection.
func (p *Proxy) BlackHoleConn(number int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if c.number == number {
			c.lost.Store(true)
			return true
		}
	}
	return false
}

// BlackHoleConns is BlackHoleConn for all connections that there are; those
// that are made later live. A firewall that has lost its state does this.
func (p *Proxy) BlackHoleConns() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.lost.Store(true)
	}
}

// A wobble is what is random in one direction of one connection. Its reader
// calls arrival, its writer write; they share nothing but the settings.
type wobble struct {
	proxy     *Proxy
	number    int
	direction uint64

	jitter  *spread // the settings that rand, lag and cutter were made for
	reorder *spread
	slice   *slicing
	rand    *rand.Rand
	lag     time.Duration
	cutter  *rand.Rand
}

// source returns the numbers that belong to a seed and this direction.
func (w *wobble) source(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(w.number)<<1|w.direction))
}

// arrival returns when what was read now arrives.
func (w *wobble) arrival(delay time.Duration) time.Time {
	delay += time.Duration(w.proxy.latency.Load())
	if s := w.proxy.jitter.Load(); s != nil {
		if s != w.jitter {
			w.jitter, w.rand = s, w.source(s.seed)
		}
		delay += s.draw(w.rand)
	}
	if s := w.proxy.reorder.Load(); s != nil {
		if s != w.reorder {
			w.reorder, w.lag = s, s.draw(w.source(s.seed))
		}
		delay += w.lag
	}
	return time.Now().Add(delay)
}

// write delivers a message, in pieces if streams are sliced.
func (w *wobble) write(to net.Conn, raw []byte, dead <-chan struct{}) error {
	s := w.proxy.slice.Load()
	if s == nil {
		_, err := to.Write(raw)
		return err
	}
	if s != w.slice {
		w.slice, w.cutter = s, w.source(s.seed)
	}
	for pieces := 1; ; pieces++ {
		n := 1 + w.cutter.IntN(s.most)
		if n >= len(raw) || pieces == maxPieces {
			_, err := to.Write(raw)
			return err
		}
		if _, err := to.Write(raw[:n]); err != nil {
			return err
		}
		raw = raw[n:]
		if s.pause == 0 {
			continue
		}
		select {
		case <-time.After(time.Duration(w.cutter.Int64N(int64(s.pause)))):
		case <-dead:
			return net.ErrClosed
		}
	}
}
