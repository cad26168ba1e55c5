//go:build !386 && !s390x

package peer_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/peer"
)

// pair returns both ends of a connection.
func pair(t *testing.T, network, address string) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	client, err = net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

// look looks until the answer is want, or for too long.
func look(t *testing.T, a *peer.Arrivals, want bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		arrives, known := a.Look()
		if !known {
			t.Fatal("the system does not tell")
		}
		if arrives == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("arrives: %v, want %v", arrives, want)
		}
	}
}

// Over TCP the system at the other end acknowledges, whether its program reads or not,
// until it has no room left; then more arrives whenever the program reads.
func TestArrivalsOverTCP(t *testing.T) {
	client, server := pair(t, "tcp", "127.0.0.1:0")
	if err := server.(*net.TCPConn).SetWriteBuffer(1 << 16); err != nil {
		t.Fatal(err)
	}
	a := peer.ArrivalsOf(server)
	look(t, a, true)
	if _, err := server.Write([]byte("a line\n")); err != nil {
		t.Fatal(err)
	}
	look(t, a, true)

	written := fill(t, server)
	look(t, a, false)
	readUntilMoreArrives(t, a, client, written)
	_ = server.Close()
	if _, known := a.Look(); known {
		t.Error("something is known of a connection that is closed")
	}
}

// readUntilMoreArrives reads from client in blocks. Its system announces room for more
// only once there is room for a whole segment, which may take several of them (RFC 1122,
// 4.2.3.3), but much less than all that was written.
func readUntilMoreArrives(t *testing.T, a *peer.Arrivals, client net.Conn, written int) {
	t.Helper()
	const block = 1 << 14
	for read := block; read < written; read += block {
		if _, err := io.CopyN(io.Discard, client, block); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if arrives, _ := a.Look(); arrives {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	t.Fatal("nothing more arrives, though the program reads")
}

// On a unix socket nothing arrives that the program does not read.
func TestArrivalsOnUnixSocket(t *testing.T) {
	client, server := pair(t, "unix", filepath.Join(t.TempDir(), "s"))
	a := peer.ArrivalsOf(server)
	look(t, a, true)
	if _, err := server.Write([]byte("a line\n")); err != nil {
		t.Fatal(err)
	}
	look(t, a, false)
	if _, err := io.CopyN(io.Discard, client, 7); err != nil {
		t.Fatal(err)
	}
	look(t, a, true)
}

// fill writes until there is no room for more, and returns how much that was.
func fill(t *testing.T, conn net.Conn) (n int) {
	t.Helper()
	if err := conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for block := bytes.Repeat([]byte("x"), 1<<16); ; {
		written, err := conn.Write(block)
		if n += written; err != nil {
			return n
		}
	}
}

func TestOf(t *testing.T) {
	_, server := pair(t, "tcp", "127.0.0.1:0")
	ctx := context.Background()
	if got := peer.Of(ctx); got != nil {
		t.Errorf("%v, want nothing", got)
	}
	if got := peer.Of(peer.With(ctx, server)); got != server {
		t.Errorf("%v, want %v", got, server)
	}
	if got := peer.Of(peer.With(ctx, tls.Server(server, &tls.Config{}))); got != server {
		t.Errorf("below TLS: %v, want %v", got, server)
	}
	if _, known := peer.ArrivalsOf(nil).Look(); known {
		t.Error("something is known of no connection")
	}
}
