package redislock

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestRoundTripsOfAShortLife checks that a command over a slow network pays one handshake and one
// round trip for each request. Close sends nothing.
func TestRoundTripsOfAShortLife(t *testing.T) {
	server := testsvc.Redis(t)
	drivertest.Cycle(t, open(t, server.URL), "t") // the server knows the scripts now
	p := faultproxy.New(t, server.Addr)
	var asked []string
	p.OnRequest(func(r faultproxy.Request) faultproxy.Action {
		asked = append(asked, r.Command())
		return faultproxy.Action{}
	})
	e, err := Open(t.Context(), "redis://"+p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	drivertest.Cycle(t, e, "t")
	_ = e.Close()
	p.Drop()
	p.OnRequest(nil)
	if got := strings.Join(asked, " "); got != "HELLO EVALSHA EVALSHA" {
		t.Errorf("the server was asked %s", got)
	}
}

// TestHungServerKeepsItsConnections checks that the old connection stays if a new one is not
// answered either, and that its requests are answered when the server continues.
func TestHungServerKeepsItsConnections(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	drivertest.Cycle(t, e, "t")
	connections := func() (ids []string) {
		for line := range strings.Lines(text(t, admin, "CLIENT LIST")) {
			if strings.Contains(line, "name=holdfast") {
				ids = append(ids, strings.Fields(line)[0])
			}
		}
		return ids
	}
	before := connections()
	server.Stop()
	answer := make(chan error, 1)
	req := drivertest.Request("t", time.Minute)
	go func() {
		_, err := e.Acquire(context.Background(), req)
		answer <- err
	}()
	select {
	case err := <-answer:
		t.Errorf("a hung server answered %v", err)
	case <-time.After(4 * minTimeout):
	}
	server.Cont()
	if err := <-answer; err != nil {
		t.Errorf("the request that was under way: %v", err)
	}
	drivertest.Release(t, e, req)
	drivertest.Eventually(t, "only the connection of before is left", func() bool {
		return strings.Join(connections(), " ") == strings.Join(before, " ")
	})
}

// TestCloseIsQuick checks that Close does not wait for a silent server.
func TestCloseIsQuick(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	for name, open := range map[string]func() *Engine{
		"its own client": func() *Engine { e, _ := Open(t.Context(), server.URL); return e },
		"the caller's":   func() *Engine { return engineOn(t, plain(t, server), nil) },
	} {
		e := open()
		other := drivertest.Request("held", time.Minute)
		drivertest.Granted(t, e, other)
		waits := drivertest.Request("held", time.Minute)
		waits.Queue, waits.WaiterTTL = true, time.Minute
		drivertest.Held(t, e, waits) // the engine has a subscription
		drivertest.Eventually(t, "the subscription", func() bool { return len(channels(t, admin)) == 2 })
		server.Stop()
		began := time.Now()
		_ = e.Close()
		if took := time.Since(began); took > 600*time.Millisecond {
			t.Errorf("%s: close took %s", name, took)
		}
		server.Cont()
		drivertest.Eventually(t, "the end of the subscription", func() bool { return len(channels(t, admin)) == 0 })
		do(t, admin, "FLUSHALL")
	}
}

// TestSegmentsPassEveryPath checks the greatest segment that the other end may send, which our end
// announced, and the greatest that ours may send.
func TestSegmentsPassEveryPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("segments are limited on Linux only")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	opts := clientOptions(nil)
	conn, err := connect(t.Context(), l.Addr().String(), &opts.Dialer, nil, dialTimeout)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = theirs.Close() }()
	for name, end := range map[string]net.Conn{"ours": conn, "theirs": theirs} {
		raw, err := end.(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) {
			const maxSegment = 2 // TCP_MAXSEG
			size, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, maxSegment)
			if err != nil || size > 1220 {
				t.Errorf("%s: segments of %d bytes, %v", name, size, err)
			}
		})
	}
}

// TestConnectTriesAgain checks that the engine connects again if the first attempt is not answered,
// and not after a refusal.
func TestConnectTriesAgain(t *testing.T) {
	d := &net.Dialer{}
	began := time.Now()
	if _, err := connect(t.Context(), "192.0.2.1:1", d, nil, 50*time.Millisecond); err == nil {
		t.Error("there is somebody where nobody can be")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var attempts atomic.Int64
	d.ControlContext = func(ctx context.Context, _, _ string, _ syscall.RawConn) error {
		if attempts.Add(1) == 1 {
			<-ctx.Done() // its packets are lost
			return io.EOF
		}
		return nil
	}
	conn, err := connect(t.Context(), l.Addr().String(), d, nil, drivertest.Patience)
	if err != nil || attempts.Load() < 2 {
		t.Fatalf("%d attempts: %v", attempts.Load(), err)
	}
	_ = conn.Close()
	_ = l.Close()
	d.ControlContext = nil
	if _, err := connect(t.Context(), l.Addr().String(), d, nil, drivertest.Patience); err == nil {
		t.Error("a refusal is a connection")
	}
	if took := time.Since(began); took > drivertest.Patience/2 {
		t.Errorf("it took %s", took)
	}
}

// TestSilenceIsLookedForEverywhere checks that behind sentinels an idle connection that fell silent
// is found as soon as a busy one.
func TestSilenceIsLookedForEverywhere(t *testing.T) {
	server, beside := testsvc.Redis(t), testsvc.Redis(t)
	detector := newDetector(sentinelSilence)
	opts := clientOptions(nil)
	idle, err := detector.dial(t.Context(), beside.Addr, &opts.Dialer, nil)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := detector.dial(t.Context(), server.Addr, &opts.Dialer, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer detector.close()
	server.Stop()
	beside.Stop()
	if _, err := io.WriteString(asked, "PING\r\n"); err != nil {
		t.Fatal(err)
	}
	for name, conn := range map[string]net.Conn{"asked": asked, "idle": idle} {
		_ = conn.SetReadDeadline(time.Now().Add(drivertest.Patience))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
