//go:build soaknet && linux

package net

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	stdnet "net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// These tests check the faults as programs see them, with the sockets of real kernels. wire_test.go
// checks single packets.

const echoPort = 7

// echo returns what it receives, on a TCP and a UDP port of a host.
func echo(t *testing.T, h *Host) {
	t.Helper()
	l, err := h.Listen(echoPort)
	if err != nil {
		t.Fatal(err)
	}
	u, err := h.ListenPacket(echoPort)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); u.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	go func() {
		buffer := make([]byte, 2000)
		for {
			n, from, err := u.ReadFrom(buffer)
			if err != nil {
				return
			}
			u.WriteTo(buffer[:n], from)
		}
	}()
}

func dial(t *testing.T, from, to *Host, network string) stdnet.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	c, err := from.Dial(ctx, network, netip.AddrPortFrom(to.Addr, echoPort))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a line of so many bytes and waits for its echo.
func ask(c stdnet.Conn, bytes int, within time.Duration) (took time.Duration, err error) {
	began := time.Now()
	c.SetDeadline(began.Add(within))
	if _, err := fmt.Fprintf(c, "%s\n", strings.Repeat("x", bytes-1)); err != nil {
		return 0, err
	}
	line, err := bufio.NewReaderSize(c, 2000).ReadString('\n')
	if err == nil && len(line) != bytes {
		err = fmt.Errorf("%d bytes of %d came back", len(line), bytes)
	}
	return time.Since(began), err
}

// wantSilence fails the test unless a request gets neither a reply nor an error: a host must not
// learn that it is cut off.
func wantSilence(t *testing.T, what string, c stdnet.Conn) {
	t.Helper()
	if _, err := ask(c, 10, 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: got %v, want silence", what, err)
	}
}

func wantAnswer(t *testing.T, what string, c stdnet.Conn) {
	t.Helper()
	if _, err := ask(c, 10, 10*time.Second); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// pair returns a network with two hosts, of which b echoes, and connections from a to b.
func pair(t *testing.T) (n *Net, a, b *Host, tcp, udp stdnet.Conn) {
	t.Helper()
	n = New(t)
	a, b = n.Host("a"), n.Host("b")
	echo(t, b)
	tcp, udp = dial(t, a, b, "tcp"), dial(t, a, b, "udp")
	wantAnswer(t, "TCP", tcp)
	wantAnswer(t, "UDP", udp)
	return n, a, b, tcp, udp
}

func TestHostsCut(t *testing.T) {
	t.Parallel()
	for what, cut := range map[string]func(n *Net, a, b *Host){
		"both ways": func(n *Net, a, b *Host) { n.Cut(a, b) },
		"requests":  func(n *Net, a, b *Host) { n.OneWay(a, b) },
		"replies":   func(n *Net, a, b *Host) { n.OneWay(b, a) },
		"port":      func(n *Net, _, b *Host) { n.Port(b, echoPort) },
		"all lost":  func(n *Net, a, b *Host) { n.Link(a, b).Loss(1) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			n, a, b, tcp, udp := pair(t)
			cut(n, a, b)
			wantSilence(t, "TCP", tcp)
			wantSilence(t, "UDP", udp)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := a.Dial(ctx, "tcp", netip.AddrPortFrom(b.Addr, echoPort)); !isTimeout(err) {
				t.Errorf("a new connection: got %v, want silence", err)
			}
			n.Heal()
			wantAnswer(t, "UDP, healed", dial(t, a, b, "udp"))
			wantAnswer(t, "TCP, healed", dial(t, a, b, "tcp"))
			tcp.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.ReadFull(tcp, make([]byte, 10)); err != nil {
				t.Errorf("what TCP has tried again has not come through: %v", err)
			}
		})
	}
}

func isTimeout(err error) bool {
	var e stdnet.Error
	return errors.As(err, &e) && e.Timeout()
}

func TestHostsForget(t *testing.T) {
	t.Parallel()
	n, a, b, tcp, udp := pair(t)
	n.Forget(a, b)
	wantSilence(t, "the old connection", tcp)
	wantAnswer(t, "a new connection", dial(t, a, b, "tcp"))
	wantAnswer(t, "UDP", udp)
	n.Heal()
	wantSilence(t, "the old connection, healed", tcp)
}

func TestHostVanishes(t *testing.T) {
	t.Parallel()
	n, a, b, tcp, udp := pair(t)
	c := n.Host("c")
	echo(t, c)
	sleeper := b.Start(t, "sleep", "60")
	// The children of a program must end, too.
	b.Start(t, "setsid", "sh", "-c", "sleep 61 & exec sleep 62")
	if err := b.Vanish(); err != nil {
		t.Fatal(err)
	}
	if _, status := sleeper.Wait(5 * time.Second); status != 128+int(syscall.SIGKILL) {
		t.Errorf("a process of it ended with %d", status)
	}
	if left, err := b.machine.processes(); err != nil || len(left) != 0 {
		t.Errorf("processes %v are left, %v", left, err)
	}
	wantSilence(t, "TCP", tcp)
	wantSilence(t, "UDP", udp)
	wantAnswer(t, "another host", dial(t, a, c, "tcp"))
}

// TestHostIsThere checks that only the wire is silent: a living host refuses a connection to a port
// on which no program listens.
func TestHostIsThere(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	_, err := a.Dial(t.Context(), "tcp", netip.AddrPortFrom(b.Addr, echoPort))
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want that the connection is refused", err)
	}
}

func TestHostsDelay(t *testing.T) {
	t.Parallel()
	n, a, b, tcp, udp := pair(t)
	n.Link(a, b).Delay(40*time.Millisecond, 0)
	for what, c := range map[string]stdnet.Conn{"TCP": tcp, "UDP": udp} {
		var all []time.Duration
		for range 11 {
			took, err := ask(c, 10, 5*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, took)
		}
		slices.Sort(all)
		if median := all[5]; all[0] < 80*time.Millisecond || median > 120*time.Millisecond {
			t.Errorf("%s: a round trip takes %s, %s at least, want 80ms", what, median, all[0])
		}
	}
}

func TestHostsLossAndCopies(t *testing.T) {
	t.Parallel()
	const packets = 2000
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	u, err := b.ListenPacket(echoPort)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	out := dial(t, a, b, "udp")
	for what, c := range map[string]struct {
		loss, copies float64
		least, most  int
	}{
		"none": {0, 0, packets, packets}, "5 %": {0.05, 0, packets * 92 / 100, packets * 98 / 100},
		"20 %": {0.2, 0, packets * 76 / 100, packets * 84 / 100}, "copies": {0, 0.1, packets * 107 / 100, packets * 113 / 100},
	} {
		n.Link(a, b).Loss(c.loss).Copies(c.copies)
		got := 0
		arrived := func(within time.Duration) {
			buffer := make([]byte, 100)
			for {
				u.SetReadDeadline(time.Now().Add(within))
				if _, _, err := u.ReadFrom(buffer); err != nil {
					return
				}
				got++
			}
		}
		for range packets / 20 {
			for range 20 { // fewer than the socket buffers
				if _, err := out.Write([]byte("packet")); err != nil {
					t.Fatal(err)
				}
			}
			arrived(2 * time.Millisecond)
		}
		arrived(300 * time.Millisecond) // packets that a busy machine delayed
		if got < c.least || got > c.most {
			t.Errorf("%s: %d of %d packets arrived", what, got, packets)
		}
	}
}

// TestHostsBlackHole checks that a link with a small MTU carries small packets, and that TCP gets
// no notice of large packets that are lost.
func TestHostsBlackHole(t *testing.T) {
	t.Parallel()
	n, a, b, tcp, _ := pair(t)
	n.Link(a, b).MTU(1000)
	if _, err := ask(tcp, 900, 5*time.Second); err != nil {
		t.Errorf("900 bytes: %v", err)
	}
	if _, err := ask(tcp, 1200, time.Second); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("1200 bytes: got %v, want silence", err)
	}
}

// TestHostsAreAlone checks that a host reaches only the other hosts of its network.
func TestHostsAreAlone(t *testing.T) {
	t.Parallel()
	n := New(t)
	h := n.Host("a")
	out := &strings.Builder{}
	cmd := exec.Command("ip", "-4", "route")
	cmd.Stdout = out
	if err := h.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if routes := strings.Split(strings.TrimSpace(out.String()), "\n"); len(routes) != 1 || !strings.HasPrefix(routes[0], "192.0.2.0/24 dev "+device) {
		t.Errorf("routes: %q", routes)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := h.Dial(ctx, "udp", netip.MustParseAddrPort("198.51.100.1:9")); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("an address outside: %v", err)
	}
}

// TestNothingStays checks that no process and no namespace outlives the test.
func TestNothingStays(t *testing.T) {
	var hosts []*Host
	t.Run("a network", func(t *testing.T) {
		n := New(t)
		for _, h := range n.Hosts("a", "b") {
			h.Start(t, "sh", "-c", "setsid sleep 63 & sleep 64")
			hosts = append(hosts, h)
		}
	})
	for _, h := range hosts {
		if left, err := h.machine.processes(); err != nil || len(left) != 0 {
			t.Errorf("host %s: processes %v are left, %v", h.Name, left, err)
		}
		// Closing the last file that keeps the namespace ends the thread.
		gone := false
		for end := time.Now().Add(5 * time.Second); !gone && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			gone = !threadIn(h.machine.net)
		}
		if !gone {
			t.Errorf("host %s: a thread is left in its namespace", h.Name)
		}
	}
}

// threadIn reports whether a thread of this process is in a namespace.
func threadIn(ns string) bool {
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		if at, err := os.Readlink("/proc/self/task/" + task.Name() + "/ns/net"); err == nil && at == ns {
			return true
		}
	}
	return false
}
