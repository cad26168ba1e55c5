package faultproxy

import (
	"math/rand/v2"
	"net"
	"sync/atomic"
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

// A slicing is how streams are cut into pieces.
type slicing struct {
	most  int           // the most bytes of one piece
	pause time.Duration // the longest pause between two pieces
	seed  uint64
}

// maxPieces bounds the pieces of one message, so that a long message is not delayed for ever.
const maxPieces = 64

// set stores a setting that is on, or none.
func set[T any](setting *atomic.Pointer[T], on bool, value T) {
	if on {
		setting.Store(&value)
	} else {
		setting.Store(nil)
	}
}

// Jitter delays every message that the proxy reads from now on by a random time between least and
// most, drawn for each message. A most of 0 ends it. A stream keeps its order: a delayed message
// delays all later ones.
func (p *Proxy) Jitter(least, most time.Duration, seed uint64) {
	set(&p.jitter, most != 0, spread{least, most, seed})
}

// Reorder gives each connection a random latency of its own from now on, of up to most in each
// direction. So a message that is sent later on another connection may arrive earlier. A stream
// keeps its order. 0 ends it.
func (p *Proxy) Reorder(most time.Duration, seed uint64) {
	set(&p.reorder, most != 0, spread{0, most, seed})
}

// Slice cuts every message from now on into pieces of random length, of up to most bytes, with
// random pauses of less than pause between them, or none if pause is 0. After maxPieces the rest
// of a message is one piece. A most of 0 ends it.
func (p *Proxy) Slice(most int, pause time.Duration, seed uint64) {
	set(&p.slice, most != 0, slicing{most, pause, seed})
}

// BlackHoleConns makes all present connections black holes: all data in both directions is lost
// from now on, without an error. Later connections are not affected. A firewall that has lost its
// state does this.
func (p *Proxy) BlackHoleConns() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.lost.Store(true)
	}
}

// A wobble has the random state of one direction of one connection. The reader calls arrival, and
// the writer calls write; they share only the settings.
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

// source returns the random numbers of a seed for this direction.
func (w *wobble) source(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(w.number)<<1|w.direction))
}

// arrival returns when a message that was read now is to arrive.
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
