package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestBodiesWithoutRights checks that the server needs little memory however many large bodies it
// receives from callers without the right to their requests, over any number of connections.
func TestBodiesWithoutRights(t *testing.T) {
	file := filepath.Join(t.TempDir(), "callers.json")
	add := func(name string, flags ...string) string {
		t.Helper()
		status, token, stderr := run(t, "memory:", append([]string{"serve", "add-caller", file, name}, flags...)...)
		if status != 0 {
			t.Fatalf("%d %s", status, stderr)
		}
		return strings.TrimSpace(token)
	}
	reader := add("reader", "--prefix", "", "--right", "read")
	worker := add("worker", "--prefix", "own/", "--right", "once")
	pair := newKeyPair(t, "one")
	s := serve(t, sqlite(t), "--callers", file, "--tls-cert", pair.cert, "--tls-key", pair.key)
	record, spaces := "ABCD", "    "
	for _, c := range []struct {
		who, token, path string
		body             body
		conns            int
	}{
		{"nobody", "guess", "complete", body{`{"name":"bank/x","record":"`, record, `"}`, 20 << 20}, 1},
		{"without the right", reader, "complete", body{`{"name":"bank/x","record":"`, record, `"}`, 20 << 20}, 1},
		{"without the right", reader, "complete", body{`{"name":"bank/x","record":"`, record, `"}`, 20 << 20}, 4},
		{"for other names", worker, "complete", body{`{"name":"bank/x","record":"`, record, `"}`, 20 << 20}, 4},
		{"for other names", worker, "extend", body{`{"requests":[{"name":"bank/x","lease_id":"0123456789abcdef0123456789abcdef","ttl_ns":60000000000}`, spaces, `]}`, 400 << 10}, 4},
		{"for other names", worker, "recall", body{`{"name":"bank/x"`, spaces, `}`, 100 << 10}, 4},
	} {
		answers := flood(t, s.urls[0]+"/v1/driver/"+c.path, c.token, c.body, c.conns, 600*time.Millisecond)
		peak := peakMemory(t, s.cmd.Process.Pid)
		t.Logf("%s, %s, %d connections: answers %v, peak %d MB", c.who, c.path, c.conns, answers, peak>>20)
		if answers[200] > 0 || len(answers) == 0 {
			t.Errorf("%s: answers %v, want refusals", c.who, answers)
		}
		if limit := 100 << 20; peak > limit && !raceEnabled() { // which multiplies the memory of a process
			t.Errorf("%s, %d connections: the server had %d MB, want %d at most", c.who, c.conns, peak>>20, limit>>20)
		}
	}
}

// TestSlowBodies checks that every path cuts off a client that does not send the announced body.
func TestSlowBodies(t *testing.T) {
	testsvc.Long(t)
	main, metrics := serveBoth(t)
	connectEach(t, 20*time.Second, [][2]string{
		{main, "/"}, {main, "/main.js"}, {main, "/healthz"}, {main, "/readyz"}, {main, "/status.json"}, {main, "/v1/locks"}, {main, "/nothing"},
		{metrics, "/metrics"}, {metrics, "/healthz"}, {metrics, "/nothing"},
	}, func(conn net.Conn, path string) {
		_, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n", path)
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
		}
		if err != nil {
			t.Errorf("%s: the connection is open: %v", path, err)
		}
	})
}

// TestSlowReaders checks that a client that sends requests and never reads is cut off, on every
// path.
func TestSlowReaders(t *testing.T) {
	testsvc.Long(t)
	main, metrics := serveBoth(t)
	connectEach(t, time.Minute, [][2]string{
		{main, "/main.js"}, {main, "/healthz"}, {main, "/v1/locks"}, {metrics, "/metrics"}, {metrics, "/nothing"},
	}, func(conn net.Conn, path string) {
		request := strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000)
		var err error
		for err == nil {
			_, err = io.WriteString(conn, request)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection is open", path)
		}
	})
}

// serveBoth starts a server, and returns its address and the address of its metrics.
func serveBoth(t *testing.T) (main, metrics string) {
	s := serve(t, sqlite(t), "--metrics-listen", "127.0.0.1:0")
	return strings.TrimPrefix(s.urls[0], "http://"), strings.TrimSuffix(strings.TrimPrefix(s.listening("metrics"), "http://"), "/metrics")
}

// connectEach calls use with a connection to each address and with its path, for all at once.
// Connections have a deadline after limit.
func connectEach(t *testing.T, limit time.Duration, targets [][2]string, use func(conn net.Conn, path string)) {
	var all sync.WaitGroup
	for _, to := range targets {
		all.Go(func() {
			conn, err := net.Dial("tcp", to[0])
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(limit))
			use(conn, to[1])
		})
	}
	all.Wait()
}

// A body is a long text: a head, a repeated fill and a tail.
type body struct {
	head, fill, tail string
	size             int
}

// flood sends long bodies over connections of HTTP/2 for a while, 100 at a time on each. It returns
// the number of replies with each status.
func flood(t *testing.T, url, token string, what body, conns int, long time.Duration) map[int]int {
	t.Helper()
	text := slices.Concat([]byte(what.head), bytes.Repeat([]byte(what.fill), what.size/len(what.fill)), []byte(what.tail))
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var mu sync.Mutex
	answers := map[int]int{}
	var all sync.WaitGroup
	for range conns {
		transport := &http.Transport{ForceAttemptHTTP2: true, MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // it is the test's own
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		for range 100 {
			all.Go(func() {
				for ctx.Err() == nil {
					r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
					if err != nil {
						t.Error(err)
						return
					}
					r.Header.Set("Authorization", "Bearer "+token)
					r.Header.Set("Content-Type", "application/json")
					answer, err := client.Do(r)
					if err != nil {
						continue // the time has passed, or the server did not read the rest of the body
					}
					_, _ = io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
					mu.Lock()
					answers[answer.StatusCode]++
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	return answers
}

// peakMemory returns the most memory that a process has had, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(text), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(peak)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
