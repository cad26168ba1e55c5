package net

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// longestQueue is how many packets may be under way. Further packets are lost, as in a router
// with full buffers.
const longestQueue = 16384

// A Wire carries IPv4 packets among hosts, with the faults that the test sets. New hosts have
// links without faults to all others. Its methods may be called concurrently.
type Wire struct {
	mu     sync.Mutex // guards the rest, and the state of Links
	rand   *rand.Rand
	hosts  map[netip.Addr]*Host
	links  map[[2]*Host]*Link
	cuts   map[[2]*Host]bool // from, to
	ports  map[netip.AddrPort]bool
	flows  map[flow]bool // TCP connections; false: forgotten
	queue  []delayed     // in the order of their arrival
	timer  *time.Timer
	counts Counts
}

// Counts are the numbers of packets by their fate.
type Counts struct {
	Carried int // delivered to their hosts, including copies
	Lost    int // by cuts, loss, the MTU of a link, or because the host has vanished
	Copied  int
	Delayed int
}

// A Host is one machine in the network.
type Host struct {
	Name string
	Addr netip.Addr

	wire    *Wire
	deliver func(packet []byte) // must not keep the packet
	gone    bool                // guarded by wire.mu
	machine *machine            // nil if there is only a wire
}

// IP returns the host's address as text.
func (h *Host) IP() string { return h.Addr.String() }

// NewWire returns a wire without hosts. The seed determines which packets are lost or copied, and
// their delays.
func NewWire(seed uint64) *Wire {
	return &Wire{
		rand: rand.New(rand.NewPCG(seed, 0)), hosts: map[netip.Addr]*Host{}, links: map[[2]*Host]*Link{},
		cuts: map[[2]*Host]bool{}, ports: map[netip.AddrPort]bool{}, flows: map[flow]bool{},
	}
}

// Attach connects a new host to the wire, which calls deliver for each packet
// that reaches it, one at a time.
func (w *Wire) Attach(name string, deliver func(packet []byte)) *Host {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.hosts) == 254 {
		panic(fmt.Sprintf("net: host %s: the network is full", name))
	}
	h := &Host{Name: name, wire: w, deliver: deliver}
	h.Addr = netip.AddrFrom4([4]byte{192, 0, 2, byte(len(w.hosts) + 1)})
	w.hosts[h.Addr] = h
	return h
}

// Send puts a packet on the wire, as if the host had sent it.
func (w *Wire) Send(from *Host, raw []byte) {
	p := packet(raw)
	if !p.whole() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	to := w.hosts[p.to()]
	if to == nil || p.from() != from.Addr {
		return // for no host: multicast, or an address outside the network
	}
	w.carry(p, from, to)
}

// carry decides the fate of a packet. The caller holds mu.
func (w *Wire) carry(p packet, from, to *Host) {
	l := w.link(from, to)
	if w.blocked(p, from, to) || l.mtu > 0 && len(p) > l.mtu || w.chance(l.loss) {
		w.counts.Lost++
		return
	}
	times := 1
	if w.chance(l.copies) {
		w.counts.Copied++
		times = 2
	}
	for range times {
		delay := l.delay
		if l.jitter > 0 {
			delay += time.Duration(w.rand.Int64N(int64(l.jitter)))
		}
		if delay == 0 {
			w.arrive(p, to)
		} else {
			w.delay(p, to, delay)
		}
	}
}

// blocked reports whether a cut blocks a packet. The caller holds mu.
func (w *Wire) blocked(p packet, from, to *Host) bool {
	alive := true
	if f, ok := p.flow(); ok {
		if p.opens() {
			w.flows[f] = true // perhaps with the ports of an old connection
		} else if _, known := w.flows[f]; !known {
			w.flows[f] = true
		}
		alive = w.flows[f]
	}
	src, dst := p.ports()
	return !alive || from.gone || to.gone || w.cuts[[2]*Host{from, to}] ||
		w.ports[netip.AddrPortFrom(from.Addr, src)] || w.ports[netip.AddrPortFrom(to.Addr, dst)]
}

// chance returns true with probability p. The caller holds mu.
func (w *Wire) chance(p float64) bool { return p > 0 && w.rand.Float64() < p }

// arrive delivers a packet to its host, unless the host has vanished. The caller holds mu.
func (w *Wire) arrive(p packet, to *Host) {
	if to.gone {
		w.counts.Lost++
		return
	}
	w.counts.Carried++
	to.deliver(p)
}

// delay queues a packet to arrive later. The caller holds mu.
func (w *Wire) delay(p packet, to *Host, d time.Duration) {
	if len(w.queue) == longestQueue {
		w.counts.Lost++
		return
	}
	w.counts.Delayed++
	at := time.Now().Add(d)
	behind, _ := slices.BinarySearchFunc(w.queue, at, func(other delayed, at time.Time) int {
		return cmp.Or(other.at.Compare(at), -1) // after all packets that arrive at the same time
	})
	w.queue = slices.Insert(w.queue, behind, delayed{at: at, to: to, packet: slices.Clone(p)})
	if behind == 0 {
		w.wake()
	}
}

// A delayed packet is under way.
type delayed struct {
	at     time.Time // when it arrives
	to     *Host
	packet packet
}

// wake sets the timer to the next arrival. The caller holds mu.
func (w *Wire) wake() {
	if len(w.queue) == 0 {
		return
	}
	d := time.Until(w.queue[0].at)
	if w.timer == nil {
		w.timer = time.AfterFunc(d, w.due)
		return
	}
	w.timer.Reset(d)
}

// due delivers the packets whose arrival time has passed.
func (w *Wire) due() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) > 0 && !w.queue[0].at.After(time.Now()) {
		next := w.queue[0]
		w.queue = w.queue[1:]
		w.arrive(next.packet, next.to)
	}
	w.wake()
}

// Counts returns the numbers so far.
func (w *Wire) Counts() Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts
}
