package notify

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func env(pairs ...string) func(string) string {
	return func(key string) string {
		for _, p := range pairs {
			if value, found := strings.CutPrefix(p, key+"="); found {
				return value
			}
		}
		return ""
	}
}

func TestWatchdog(t *testing.T) {
	own := "WATCHDOG_PID=" + strconv.Itoa(os.Getpid())
	for _, test := range []struct {
		env  []string
		want time.Duration
	}{
		{nil, 0},
		{[]string{"WATCHDOG_USEC=500000"}, 500 * time.Millisecond},
		{[]string{"WATCHDOG_USEC=500000", own}, 500 * time.Millisecond},
		{[]string{"WATCHDOG_USEC=500000", "WATCHDOG_PID=1"}, 0}, // another process's
		{[]string{"WATCHDOG_USEC=0"}, 0},
		{[]string{"WATCHDOG_USEC=-1"}, 0},
		{[]string{"WATCHDOG_USEC=soon"}, 0},
		{[]string{"WATCHDOG_USEC=9223372036854775807"}, 0}, // too long to be meant
	} {
		if got := Watchdog(env(test.env...)); got != test.want {
			t.Errorf("%q: %s, want %s", test.env, got, test.want)
		}
	}
}

func TestFind(t *testing.T) {
	if m, err := Find(env()); m != nil || err != nil {
		t.Errorf("without a manager: %v, %v", m, err)
	}
	for _, name := range []string{"relative", "vsock:2:1", filepath.Join(t.TempDir(), "nobody")} {
		if m, err := Find(env("NOTIFY_SOCKET=" + name)); m != nil || err == nil {
			t.Errorf("%q: %v, %v; want an error", name, m, err)
		}
	}
	var none *Manager
	none.Tell("READY=1")
	none.Ping(time.Second)()
	var silent *Socket
	silent.Serve(nil)
	silent.Close()
}

// TestMessages sends messages from one side to the other, by a path and by an abstract name.
func TestMessages(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "s"), fmt.Sprintf("@holdfast-test-%d", os.Getpid())} {
		s, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		heard := make(chan Message, 10)
		s.Serve(func(m Message) { heard <- m })
		m, err := Find(env("NOTIFY_SOCKET=" + path))
		if err != nil {
			t.Fatal(err)
		}
		m.Tell("READY=1", "STATUS=a=b", "not a pair", "=", "STATUS=the last counts")
		if got := fmt.Sprint(<-heard); got != "map[READY:1 STATUS:the last counts]" {
			t.Errorf("heard %s", got)
		}
		m.Status("two\nlines")
		if got := fmt.Sprint(<-heard); got != "map[STATUS:two lines]" {
			t.Errorf("heard %s", got)
		}
		stop := m.Ping(time.Minute)
		if got := fmt.Sprint(<-heard); got != "map[WATCHDOG:1]" {
			t.Errorf("heard %s", got)
		}
		stop()
		s.Close()
		m.Tell("READY=1") // the socket is closed
	}
}

// TestTellDoesNotWait checks that a manager that does not read delays Tell only shortly.
func TestTellDoesNotWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m, err := Find(env("NOTIFY_SOCKET=" + path))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		for range 300 { // more than a socket keeps, mostly 10
			_ = m.conn.SetWriteDeadline(time.Now().Add(time.Millisecond))
			if _, err := m.conn.Write([]byte("STATUS=filling")); err != nil {
				break
			}
		}
		m.Tell("STATUS=full")
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for the manager")
	}
}
