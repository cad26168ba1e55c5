package net

import (
	"net/netip"
	"time"
)

// Cut loses all between two hosts, both ways.
func (w *Wire) Cut(a, b *Host) {
	w.OneWay(a, b)
	w.OneWay(b, a)
}

// OneWay loses what one host sends to another. The way back stays.
func (w *Wire) OneWay(from, to *Host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cuts[[2]*Host{from, to}] = true
}

// Split cuts every host of one side from every host of the other.
func (w *Wire) Split(side, other []*Host) {
	for _, a := range side {
		for _, b := range other {
			w.Cut(a, b)
		}
	}
}

// Port loses what goes to a port of a host, and what comes from it.
func (w *Wire) Port(h *Host, port uint16) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ports[netip.AddrPortFrom(h.Addr, port)] = true
}

// Forget loses what belongs to the TCP connections that two hosts have now, for
// good, as a firewall does that has lost its state. Both ends are left with half
// open connections; new ones can be made.
func (w *Wire) Forget(a, b *Host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for f := range w.flows {
		if f.between(a.Addr, b.Addr) {
			w.flows[f] = false
		}
	}
}

// Heal ends all cuts, and makes every link a good one. Connections that were
// forgotten stay so, and hosts that have vanished do not come back.
func (w *Wire) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.cuts)
	clear(w.ports)
	for _, l := range w.links {
		l.quality = quality{}
	}
}

// leave makes a host vanish from the wire: nothing reaches it, nothing comes from it any
// more, and no host is notified.
func (w *Wire) leave(h *Host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.gone = true
}

// A Link is how good the way between two hosts is, the same in both directions.
// Its methods change one property of it, and return the link.
type Link struct {
	wire    *Wire
	quality // guarded by wire.mu
}

type quality struct {
	delay, jitter time.Duration
	loss, copies  float64
	mtu           int
}

// Link returns the link between two hosts.
func (w *Wire) Link(a, b *Host) *Link {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.link(a, b)
}

// link is Link for those who hold mu.
func (w *Wire) link(a, b *Host) *Link {
	if b.Addr.Less(a.Addr) {
		a, b = b, a
	}
	l := w.links[[2]*Host{a, b}]
	if l == nil {
		l = &Link{wire: w}
		w.links[[2]*Host{a, b}] = l
	}
	return l
}

// Delay makes each packet take this long, and up to jitter more, so that packets
// overtake each other. A round trip takes twice as long.
func (l *Link) Delay(delay, jitter time.Duration) *Link {
	return l.set(func(q *quality) { q.delay, q.jitter = delay, jitter })
}

// Loss loses each packet with a probability.
func (l *Link) Loss(p float64) *Link {
	return l.set(func(q *quality) { q.loss = p })
}

// Copies delivers each packet twice with a probability.
func (l *Link) Copies(p float64) *Link {
	return l.set(func(q *quality) { q.copies = p })
}

// MTU loses packets of more bytes than that, without a word: the hosts go on
// taking the link for one that carries 1500. 0 loses none.
func (l *Link) MTU(bytes int) *Link {
	return l.set(func(q *quality) { q.mtu = bytes })
}

func (l *Link) set(change func(*quality)) *Link {
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	change(&l.quality)
	return l
}
