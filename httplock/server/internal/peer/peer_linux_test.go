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

// look calls Look until it returns want, for at most ten seconds.
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

// TestArrivalsOverTCP checks that over TCP data arrives without being read, until the other end has
// no room left, and that more arrives when its program reads.
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

// readUntilMoreArrives reads from client in blocks until more data arrives. The client's system
// announces room only when there is room for a whole segment. That may take several blocks (RFC
// 1122, 4.2.3.3), but much less than all the data.
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

// TestArrivalsOnUnixSocket checks that data on a unix socket arrives only when the program reads
// it.
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

// fill writes until there is no room, and returns the number of bytes written.
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
