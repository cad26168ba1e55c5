package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

func TestOpenErrors(t *testing.T) {
	server := testsvc.Redis(t, "--requirepass", secret)
	unused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := unused.Addr().String()
	_ = unused.Close()
	for _, c := range []struct {
		url  string
		want error
	}{
		{"redis://:" + secret + "@" + server.Addr, nil},
		{"redis://default:" + secret + "@" + server.Addr + "/3?prefix=a:", nil},
		{"redis://" + server.Addr, driver.ErrPermission},
		{"redis://:wrong" + secret + "@" + server.Addr, driver.ErrPermission},
		{"redis://nobody:" + secret + "@" + server.Addr, driver.ErrPermission},
		{"redis://:" + secret + "@" + server.Addr + "/99", driver.ErrInvalid},
		{"redis://:" + secret + "@" + nobody, driver.ErrUnavailable},
		{"redis://:" + secret + "@no-such-host.invalid", driver.ErrUnavailable},
		{"rediss://:" + secret + "@" + server.Addr, driver.ErrUnavailable}, // a server without TLS
		{"", driver.ErrInvalid},
		{"localhost:6379", driver.ErrInvalid},
		{"http://localhost", driver.ErrInvalid},
		{"redis:localhost", driver.ErrInvalid},
		{"redis://", driver.ErrInvalid},
		{"redis://" + secret + "@localhost", driver.ErrInvalid},
		{"redis://u:pa/" + secret + "@localhost", driver.ErrInvalid},
		{"redis://u:%zz" + secret + "@localhost", driver.ErrInvalid},
		{"redis://localhost/x", driver.ErrInvalid},
		{"redis://localhost/-1", driver.ErrInvalid},
		{"redis://localhost/0/1", driver.ErrInvalid},
		{"redis://localhost#x", driver.ErrInvalid},
		{"redis://localhost?client_cache=1", driver.ErrInvalid},
		{"redis://localhost?foreign=no", driver.ErrInvalid},
		{"redis://localhost?foreign=", driver.ErrInvalid},
		{"redis://localhost?prefix=a&prefix=b", driver.ErrInvalid},
		{"redis://localhost?prefix=%zz", driver.ErrInvalid},
		{"redis://localhost?prefix=a{b", driver.ErrInvalid},
		{"redis://localhost?prefix={}", driver.ErrInvalid},
		{"redis://localhost?prefix=%00", driver.ErrInvalid},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), drivertest.Patience)
		e, err := Open(ctx, c.url)
		cancel()
		wantIs(t, fmt.Sprintf("open %q", c.url), err, c.want)
		if (err == nil) != (c.want == nil) {
			t.Errorf("open %q: error %v", c.url, err)
		}
		if err == nil {
			_ = e.Close()
		}
	}
}

// TestOpenGivesUp checks that Open of a silent server ends with the context.
func TestOpenGivesUp(t *testing.T) {
	server := testsvc.Redis(t)
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := Open(ctx, server.URL)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	if d := time.Since(start); d > dialTimeout/2 {
		t.Errorf("it took %s", d)
	}
}

func TestServerIsNoRedis(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	_, err = Open(t.Context(), "redis://"+l.Addr().String())
	wantIs(t, "open", err, driver.ErrUnavailable)
}
