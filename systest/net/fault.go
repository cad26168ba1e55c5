package net

import (
	"net/netip"
	"time"
)

// Cut loses all packets between two hosts, both ways.
func (w *Wire) Cut(a, b *Host) {
	w.OneWay(a, b)
	w.OneWay(b, a)
}

// OneWay loses the packets from one host to another. The other direction stays.
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

// Port loses the packets to and from a port of a host.
func (w *Wire) Port(h *Host, port uint16) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ports[netip.AddrPortFrom(h.Addr, port)] = true
}

// Forget loses all further packets of the current TCP connections between two hosts, as a
// firewall does that has lost its state. Both ends are left with half-open connections. New
// connections work.
func (w *Wire) Forget(a, b *Host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for f := range w.flows {
		if f.between(a.Addr, b.Addr) {
			w.flows[f] = false
		}
	}
}

// Heal ends all cuts, and makes every link good. Forgotten connections stay forgotten, and hosts
// that have vanished do not come back.
func (w *Wire) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.cuts)
	clear(w.ports)
	for _, l := range w.links {
		l.quality = quality{}
	}
}

// leave makes a host vanish from the wire, without notice: no packet reaches it or comes from it.
func (w *Wire) leave(h *Host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.gone = true
}

// A Link is the quality of the connection between two hosts, the same in both directions. Each
// method sets one property and returns the link.
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

// link is Link for callers that hold mu.
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

// Delay delays each packet by delay, and by up to jitter more, so that packets may overtake each
// other. A round trip takes twice as long.
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

// MTU silently loses packets of more bytes than that: the hosts still believe that the link
// carries 1500. 0 loses none.
func (l *Link) MTU(bytes int) *Link {
	return l.set(func(q *quality) { q.mtu = bytes })
}

func (l *Link) set(change func(*quality)) *Link {
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	change(&l.quality)
	return l
}
