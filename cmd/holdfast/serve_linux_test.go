package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serveUnit starts a server as systemd starts a unit with Type=notify, a watchdog of half a second
// and these sockets.
func (m *manager) serveUnit(store string, sockets ...*os.File) *process {
	m.t.Helper()
	unit := "export NOTIFY_SOCKET=" + m.path + " WATCHDOG_USEC=500000 WATCHDOG_PID=$$"
	if len(sockets) > 0 {
		unit += " LISTEN_PID=$$ LISTEN_FDS=" + string(rune('0'+len(sockets))) + " LISTEN_FDNAMES=any"
	}
	return startWith(m.t, store, "sh", func(p *process) []string {
		return []string{"-c", unit + `; exec "$@"`, "sh", "holdfast", "serve", "--drain", "5s"}
	}, func(cmd *exec.Cmd) { cmd.ExtraFiles = sockets })
}

// TestServeUnderSystemd checks that the server serves the sockets that it is given and no others,
// and notifies systemd that it is ready, alive and stopping. It must not remove the sockets, which
// are systemd's.
func TestServeUnderSystemd(t *testing.T) {
	t.Parallel()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tcp.Close() }()
	path := filepath.Join(t.TempDir(), "s")
	unix, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close() }()
	var sockets []*os.File
	for _, l := range []interface{ File() (*os.File, error) }{tcp.(*net.TCPListener), unix.(*net.UnixListener)} {
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		sockets = append(sockets, f)
	}
	m := newManager(t)
	p := m.serveUnit(sqlite(t), sockets...)
	m.await("READY=1 STATUS=serving sqlite:")
	if got, want := strings.Fields(read(t, p.stdout)), "http://"+tcp.Addr().String()+" http+unix://"+path; strings.Join(got, " ") != want {
		t.Errorf("it listens at %q, want %s", got, want)
	}
	if status, _ := get(t, http.DefaultClient, "http://"+tcp.Addr().String()+"/readyz"); status != 200 {
		t.Errorf("at the address: %d", status)
	}
	if status, _ := get(t, overSocket(path), "http://holdfast/readyz"); status != 200 {
		t.Errorf("at the socket: %d", status)
	}
	eventually(t, "it says that it lives", func() bool { return m.pinged(time.Second) })
	p.signal(syscall.SIGTERM)
	m.await("STOPPING=1")
	p.want(0)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("systemd's socket is gone: %v", err)
	}
}

// TestServeOthersSockets checks that sockets for another process are not served.
func TestServeOthersSockets(t *testing.T) {
	t.Parallel()
	p := startWith(t, sqlite(t), "sh", func(*process) []string {
		return []string{"-c", "export LISTEN_PID=1 LISTEN_FDS=3; exec holdfast serve --listen 127.0.0.1:0"}
	}, nil)
	eventually(t, "it listens", func() bool { return strings.HasPrefix(read(t, p.stdout), "http://127.0.0.1:") })
}

// TestServePublicSocket checks that a systemd socket that other hosts can reach is refused, as such
// an address is.
func TestServePublicSocket(t *testing.T) {
	t.Parallel()
	tcp, err := net.Listen("tcp", ":0") //nolint:gosec // nobody is answered there
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tcp.Close() }()
	f, err := tcp.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	p := newManager(t).serveUnit(sqlite(t), f)
	p.want(78)
	if !strings.Contains(read(t, p.stderr), "--callers") {
		t.Error("it does not say what to do")
	}
}
