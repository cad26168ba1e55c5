package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A manager is a service manager that records the notices that it receives.
type manager struct {
	t    *testing.T
	path string

	mu   sync.Mutex // guards the rest
	told []string
	ping time.Time // when the last one arrived
}

func newManager(t *testing.T) *manager {
	t.Helper()
	m := &manager{t: t, path: filepath.Join(t.TempDir(), "notify")}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		if t.Failed() {
			t.Logf("the manager was told %q", m.heard(""))
		}
	})
	go func() { // ends with the test
		data := make([]byte, 4096)
		for {
			n, err := conn.Read(data)
			if err != nil {
				return
			}
			m.note(string(data[:n]))
		}
	}()
	return m
}

func (m *manager) note(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if text == "WATCHDOG=1" {
		m.ping = time.Now()
		return
	}
	m.told = append(m.told, strings.ReplaceAll(text, "\n", " "))
}

// heard returns the notices that contain text.
func (m *manager) heard(text string) (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.told {
		if strings.Contains(s, text) {
			all = append(all, s)
		}
	}
	return all
}

func (m *manager) await(text string) {
	m.t.Helper()
	eventually(m.t, "the manager hears "+text, func() bool { return len(m.heard(text)) > 0 })
}

// pinged reports whether the last watchdog notice arrived less than within ago.
func (m *manager) pinged(within time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.ping) < within
}

// serve starts a candidate as a unit with Type=notify and a watchdog of half a second.
func (m *manager) serve(store string, command ...string) *process {
	m.t.Helper()
	return startProgram(m.t, store, "sh", func(*process) []string {
		unit := "export NOTIFY_SOCKET=" + m.path + " WATCHDOG_USEC=500000 WATCHDOG_PID=$$; exec \"$@\""
		return append([]string{"-c", unit, "sh", "holdfast", "elect", "--ttl", "10s", "--kill-after", "100ms", "--pause", "30s", "job", "--"}, command...)
	})
}

// TestElectUnderAManager checks that a unit counts as started as soon as it leads or waits, and
// that it passes on the status of its command. A command that sends no more heartbeats loses the
// lead, while the unit lives on.
func TestElectUnderAManager(t *testing.T) {
	t.Parallel()
	store, dir := sqlite(t), t.TempDir()
	first, second := newManager(t), newManager(t)
	file, next := filepath.Join(dir, "first"), filepath.Join(dir, "next")

	a := first.serve(store, "workload", "-alive", "1500ms", file)
	first.await("READY=1 STATUS=leading, with fencing token ")
	first.await("STATUS=leading: at work")
	b := second.serve(store, "workload", "-alive", "60s", next)
	second.await("READY=1 STATUS=waiting: number 1 of 1, ")

	first.await("no heartbeat for 500ms; the command was stopped; standing for election again in ")
	second.await("STATUS=leading: at work")
	wantAfter(t, next, last(t, file))
	if worked := last(t, file).at.Sub(readMarks(t, file)[0].at); worked < 1800*time.Millisecond || worked > 6*time.Second {
		t.Errorf("the command worked for %s, of which it said for 1.5s that it was alive", worked)
	}
	eventually(t, "both units are alive", func() bool { return first.pinged(time.Second) && second.pinged(time.Second) })

	b.signal(syscall.SIGTERM)
	second.await("STOPPING=1")
	b.want(128 + int(syscall.SIGTERM))
	a.signal(syscall.SIGTERM)
	a.want(128 + int(syscall.SIGTERM))
	for _, m := range []*manager{first, second} {
		if wrong := m.heard("WATCHDOG="); len(wrong) > 0 {
			t.Errorf("the manager was told %q", wrong)
		}
	}
}

// TestElectCommandHasItsOwnManager checks that the command gets a notification socket of its own,
// not the manager's socket or WATCHDOG_PID, and that the socket is removed at the end.
func TestElectCommandHasItsOwnManager(t *testing.T) {
	t.Parallel()
	m, file := newManager(t), filepath.Join(t.TempDir(), "env")
	p := m.serve(sqlite(t), "sh", "-c", "env >"+file+".tmp; mv "+file+".tmp "+file+"; exec sleep 60")
	awaitFile(t, file)
	env := read(t, file)
	var socket string
	for line := range strings.Lines(env) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "NOTIFY_SOCKET="); found {
			socket = path
		}
	}
	if socket == "" || socket == m.path || strings.Contains(env, "WATCHDOG_PID=") || !strings.Contains(env, "WATCHDOG_USEC=500000\n") {
		t.Errorf("the command has %s", env)
	}
	p.signal(syscall.SIGTERM)
	p.want(128 + int(syscall.SIGTERM))
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("%s stayed behind (%v)", socket, err)
	}
}

// TestElectGivesTimeToStart checks that the watchdog does not stop a command that has not yet
// reported that it is ready.
func TestElectGivesTimeToStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "marks")
	p := start(t, sqlite(t), "elect", "--stall-after", "200ms", "--ttl", "2s", "job", "--", "workload", file)
	awaitMarks(t, file, 1)
	began := time.Now()
	eventually(t, "it goes on", func() bool { return last(t, file).at.Sub(began) > 2*time.Second })
	if pids := awaitMarks(t, file, 1); len(pids) != 1 {
		t.Errorf("%d commands were started", len(pids))
	}
	p.signal(syscall.SIGTERM)
	p.want(128 + int(syscall.SIGTERM))
}
