//go:build soaknet && linux

package nettest

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/net"
)

const (
	// patience is how long a test waits at most, even on a loaded machine.
	patience = 60 * time.Second

	redisPort    = 6379
	sentinelPort = 26379

	// slack is how much a loaded machine may add to a time that a test bounds.
	slack = 750 * time.Millisecond
)

// redisOn starts a server on a host and returns its URL.
func redisOn(t *testing.T, h *net.Host, options ...string) (url string) {
	t.Helper()
	program, err := testsvc.LookServer()
	if err != nil {
		t.Fatal(err)
	}
	h.Start(t, program, append([]string{
		"--port", strconv.Itoa(redisPort), "--bind", "0.0.0.0", "--dir", t.TempDir(),
		"--save", "", "--appendonly", "no", "--protected-mode", "no",
	}, options...)...).Await("Ready to accept connections")
	return fmt.Sprintf("redis://%s:%d", h.IP(), redisPort)
}

// ask sends a command to a server on a host, from that host, so that no cut is in between. It
// returns "" if there is no reply.
func ask(h *net.Host, port uint16, words ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := h.Dial(ctx, "tcp", netip.AddrPortFrom(h.Addr, port))
	if err != nil {
		return ""
	}
	defer conn.Close()
	answer, err := testsvc.Ask(conn, words...)
	if err != nil {
		return ""
	}
	return answer
}

// eventually fails the test if ok does not return true within patience. It returns the time when ok
// did.
func eventually(t *testing.T, what string, ok func() bool) time.Time {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
	return time.Now()
}

// run starts holdfast on a host.
func run(t *testing.T, h *net.Host, store string, args ...string) *net.Process {
	t.Helper()
	return h.StartEnv(t, []string{"HOLDFAST_STORE=" + store}, "holdfast", args...)
}

// queued returns how many requests wait for a lock, according to the store.
func queued(t *testing.T, h *net.Host, store, name string) int {
	t.Helper()
	p := run(t, h, store, "show", name)
	p.Wait(patience)
	return strings.Count(p.Output(), ", waiting for ")
}

// marker makes the test binary a program that writes the time to a file every few milliseconds. The
// file shows when the program ran, however it ended.
const marker = "marks"

func writeMarks(name string) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := fmt.Fprintln(file, time.Now().UnixNano()); err != nil {
			os.Exit(1)
		}
	}
}

// marks returns the first and the last mark in a file, if it exists and has any.
func marks(t *testing.T, name string) (first, last time.Time, any bool) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		return first, last, false
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		ns, err := strconv.ParseInt(s.Text(), 10, 64)
		if err != nil {
			continue // the line is incomplete
		}
		last = time.Unix(0, ns)
		if !any {
			first, any = last, true
		}
	}
	return first, last, any
}

// portBlocked is a cut for all hosts at once.
const portBlocked = "the port of the store is blocked for all"

// cuts are the ways in which a host can be cut off from another.
var cuts = map[string]func(n *net.Net, host, store *net.Host){
	"cut off":               func(n *net.Net, h, s *net.Host) { n.Cut(h, s) },
	"its requests are lost": func(n *net.Net, h, s *net.Host) { n.OneWay(h, s) },
	"its replies are lost":  func(n *net.Net, h, s *net.Host) { n.OneWay(s, h) },
	portBlocked:             func(n *net.Net, _, s *net.Host) { n.Port(s, redisPort) },
}
