package net

import (
	"context"
	stdnet "net"
	"net/netip"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// A Net is a set of hosts with a wire between them. It ends with its test, with all its
// processes, namespaces and devices.
type Net struct {
	*Wire
	t testing.TB
}

// New returns a network without hosts.
func New(t testing.TB) *Net {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed of the wire is %d", seed)
	return &Net{Wire: NewWire(seed), t: t}
}

// Host adds a host. It fails the test if it lacks the permissions.
func (n *Net) Host(name string) *Host {
	n.t.Helper()
	var h *Host
	// The network is silent until this method returns.
	h = n.Attach(name, func(p []byte) { _, _ = h.machine.tun.Write(p) })
	m, err := newMachine(h.IP(), func(p []byte) { n.Send(h, p) })
	if err != nil {
		n.t.Fatalf("net: host %s: %v", name, err)
	}
	n.mu.Lock()
	h.machine = m
	n.mu.Unlock()
	n.t.Cleanup(func() {
		n.leave(h)
		if err := m.close(); err != nil {
			n.t.Errorf("net: host %s: %v", name, err)
		}
	})
	return h
}

// Hosts adds several hosts.
func (n *Net) Hosts(names ...string) (hosts []*Host) {
	n.t.Helper()
	for _, name := range names {
		hosts = append(hosts, n.Host(name))
	}
	return hosts
}

// Spawn starts a command on the host. The command ends with the host. The caller waits for the
// command.
func (h *Host) Spawn(cmd *exec.Cmd) (err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	h.machine.do(func() { err = cmd.Start() })
	return err
}

// Vanish removes the host as a power cut does: it is cut off from all others and its processes
// are killed, without notice. It does not come back.
func (h *Host) Vanish() error {
	h.wire.leave(h)
	return h.machine.kill()
}

// Dial connects to a TCP or UDP address from this host. Any goroutine may use the connection.
func (h *Host) Dial(ctx context.Context, network string, address netip.AddrPort) (conn stdnet.Conn, err error) {
	// With an address, not a name, the socket is made on this thread.
	h.machine.do(func() { conn, err = (&stdnet.Dialer{KeepAlive: -1}).DialContext(ctx, network, address.String()) })
	return conn, err
}

// Listen accepts TCP connections on a port of this host.
func (h *Host) Listen(port uint16) (l stdnet.Listener, err error) {
	h.machine.do(func() { l, err = stdnet.Listen("tcp", netip.AddrPortFrom(h.Addr, port).String()) })
	return l, err
}

// ListenPacket receives UDP packets on a port of this host.
func (h *Host) ListenPacket(port uint16) (c stdnet.PacketConn, err error) {
	h.machine.do(func() { c, err = stdnet.ListenPacket("udp", netip.AddrPortFrom(h.Addr, port).String()) })
	return c, err
}
