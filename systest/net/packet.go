package net

import (
	"encoding/binary"
	"net/netip"
)

// A packet is an IPv4 packet.
type packet []byte

// Numbers of the protocols above IPv4 that the wire knows.
const (
	protoTCP = 6
	protoUDP = 17
)

const leastHeader = 20 // of IPv4, in bytes; TCP's is as long

// whole reports whether p is an IPv4 packet with a header. The wire carries no others, such as
// those that find IPv6 neighbours.
func (p packet) whole() bool {
	return len(p) >= leastHeader && p[0]>>4 == 4 && p.headerLen() >= leastHeader && len(p) >= p.headerLen()
}

func (p packet) headerLen() int { return int(p[0]&0x0f) * 4 }

func (p packet) from() netip.Addr { return netip.AddrFrom4([4]byte(p[12:16])) }
func (p packet) to() netip.Addr   { return netip.AddrFrom4([4]byte(p[16:20])) }

// ports returns the ports of TCP and UDP, or 0 for packets without ports, such as a fragment
// after the first.
func (p packet) ports() (from, to uint16) {
	above := p[p.headerLen():]
	fragment := binary.BigEndian.Uint16(p[6:8]) & 0x1fff
	if p[9] != protoTCP && p[9] != protoUDP || fragment != 0 || len(above) < 4 {
		return 0, 0
	}
	return binary.BigEndian.Uint16(above), binary.BigEndian.Uint16(above[2:])
}

// opens reports whether p is the first packet of a TCP connection.
func (p packet) opens() bool {
	const syn, ack = 0x02, 0x10
	above := p[p.headerLen():]
	return p[9] == protoTCP && len(above) >= leastHeader && above[13]&(syn|ack) == syn
}

// A flow is a TCP connection, the same for both directions.
type flow struct{ low, high netip.AddrPort }

// flow returns the TCP connection of the packet, if it has one.
func (p packet) flow() (f flow, ok bool) {
	from, to := p.ports()
	if p[9] != protoTCP || from == 0 {
		return f, false
	}
	f = flow{netip.AddrPortFrom(p.from(), from), netip.AddrPortFrom(p.to(), to)}
	if f.high.Compare(f.low) < 0 {
		f.low, f.high = f.high, f.low
	}
	return f, true
}

// between reports whether the connection is between two hosts.
func (f flow) between(a, b netip.Addr) bool {
	return f.low.Addr() == a && f.high.Addr() == b || f.low.Addr() == b && f.high.Addr() == a
}
