//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// behindServers runs a test on each kind of store, for servers that the test starts.
func behindServers(t *testing.T, test func(t *testing.T, store string)) {
	for name, open := range map[string]func(t *testing.T) string{
		"sqlite":   sqlite,
		"redis":    func(t *testing.T) string { t.Helper(); return testsvc.Redis(t).URL },
		"postgres": func(t *testing.T) string { t.Helper(); return testsvc.Postgres(t).URL },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// freeAddress returns an address at which no process listens now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// token returns the fencing token of the holder of a name.
func token(t *testing.T, store, name string) uint64 {
	t.Helper()
	s := show(t, store, name)
	if len(s.Holders) != 1 {
		t.Fatalf("%s has %d holders, want one", name, len(s.Holders))
	}
	return s.Holders[0].FencingToken
}

// TestServeKilled checks that a job keeps its lease when its server is killed and started again, or
// when there is another server. The lock of a killed job must become free.
func TestServeKilled(t *testing.T) {
	t.Parallel()
	behindServers(t, func(t *testing.T, store string) {
		address := freeAddress(t)
		first := serve(t, store, "--listen", address)
		second := serve(t, store)
		both := "http://" + address + "," + strings.TrimPrefix(second.urls[0], "http://")
		again := hold(t, first.urls[0], "again", "--ttl", "8s")
		other := hold(t, both, "other", "--ttl", "8s")
		was := []uint64{token(t, store, "again"), token(t, store, "other")}

		first.signal(syscall.SIGKILL)
		first.want(128 + int(syscall.SIGKILL))
		wantRun(t, 75, both, "run", "-n", "other", "--", "true") // the other server replies
		serve(t, store, "--listen", address)
		time.Sleep(9 * time.Second) // longer than a lease lasts without renewals
		if now := []uint64{token(t, store, "again"), token(t, store, "other")}; now[0] != was[0] || now[1] != was[1] {
			t.Errorf("the tokens are %d, and were %d", now, was)
		}
		again.finish()
		again.want(0)
		other.finish()
		other.want(0)

		dead := hold(t, both, "dead", "--ttl", "2s")
		if err := dead.cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		wantRun(t, 0, both, "run", "-w", "20", "dead", "--", "true")
	})
}

// post sends a request with an idempotency key and a JSON body to a server.
func post(t *testing.T, url, key, body string) (*http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	return http.DefaultClient.Do(req)
}

// A line is a line of a stream that holds a lock.
type line struct {
	Event string
	Token uint64 `json:"fencing_token"`
}

// stream opens a stream that holds a lock, and returns a scanner of its lines.
func stream(t *testing.T, server, key, name string) *bufio.Scanner {
	t.Helper()
	resp, err := post(t, server+"/v1/leases?hold=1", key, `{"name":"`+name+`","ttl_ms":10000}`)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return bufio.NewScanner(resp.Body)
}

// awaitLine reads lines until one has the event, and returns it.
func awaitLine(t *testing.T, lines *bufio.Scanner, event string) (l line) {
	t.Helper()
	for lines.Scan() {
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if l.Event == event {
			return l
		}
	}
	t.Fatalf("the stream ends without %s (%v)", event, lines.Err())
	return l
}

// TestServeDrains checks that TERM ends a server with status 0, without releasing locks. Jobs keep
// their locks, and streams get "moved" and continue at another server with the same token.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	behindServers(t, func(t *testing.T, store string) {
		leaves, stays := serve(t, store), serve(t, store)
		both := leaves.urls[0] + "," + strings.TrimPrefix(stays.urls[0], "http://")
		job := hold(t, both, "job", "--ttl", "4s")
		was := token(t, store, "job")
		const key = "a-key-of-16-or-more"
		lines := stream(t, leaves.urls[0], key, "streamed")
		acquired := awaitLine(t, lines, "acquired")

		began := time.Now()
		leaves.signal(syscall.SIGTERM)
		awaitLine(t, lines, "moved")
		leaves.want(0)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %s, though nothing was at work", took)
		}
		if n := len(show(t, store, "streamed").Holders); n != 1 {
			t.Fatalf("%d hold the lock of the stream that has moved", n)
		}
		if l := awaitLine(t, stream(t, stays.urls[0], key, "streamed"), "acquired"); l.Token != acquired.Token {
			t.Errorf("the token is %d elsewhere, and was %d", l.Token, acquired.Token)
		}
		time.Sleep(5 * time.Second) // longer than a lease lasts without renewals
		if now := token(t, store, "job"); now != was {
			t.Errorf("the token of the job is %d, and was %d", now, was)
		}
		job.finish()
		job.want(0)
	})
}

// TestServeDrainWaits checks that a draining server refuses new work and is not ready while an
// earlier request is at work, and ends after its reply.
func TestServeDrainWaits(t *testing.T) {
	t.Parallel()
	redis := testsvc.Redis(t)
	s := serve(t, redis.URL, "--drain", "25s")
	redis.Stop()
	begun := make(chan int)
	go func() {
		resp, err := post(t, s.urls[0]+"/v1/leases", "begun-before-the-drain", `{"name":"job","ttl_ms":30000}`)
		if err != nil {
			t.Error(err)
			close(begun)
			return
		}
		_ = resp.Body.Close()
		begun <- resp.StatusCode
	}()
	eventually(t, "it is at work", func() bool {
		_, text := s.get("/metrics")
		return strings.Contains(text, "holdfast_http_requests_in_flight 1\n")
	})
	s.signal(syscall.SIGTERM)
	eventually(t, "it is not ready", func() bool {
		status, body := s.get("/readyz")
		return status == 503 && strings.Contains(body, "draining")
	})
	resp, err := post(t, s.urls[0]+"/v1/leases", "begun-after-the-drain", `{"name":"other","ttl_ms":30000}`)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), `"code":"draining"`) || resp.Header.Get("Retry-After") == "" {
		t.Errorf("new work: %d %s", resp.StatusCode, body)
	}
	s.signal(syscall.SIGHUP) // must not end it
	redis.Cont()
	if status := <-begun; status != 201 {
		t.Errorf("what was begun is answered %d", status)
	}
	s.want(0)
}

// TestServeSecondSignal checks that a second signal ends a draining server at once.
func TestServeSecondSignal(t *testing.T) {
	t.Parallel()
	redis := testsvc.Redis(t)
	s := serve(t, redis.URL, "--drain", "25s")
	redis.Stop()
	defer redis.Cont()
	go func() {
		if resp, err := post(t, s.urls[0]+"/v1/leases", "begun-before-the-drain", `{"name":"job","ttl_ms":30000}`); err == nil {
			_ = resp.Body.Close()
		}
	}()
	eventually(t, "it is at work", func() bool {
		_, text := s.get("/metrics")
		return strings.Contains(text, "holdfast_http_requests_in_flight 1\n")
	})
	s.signal(syscall.SIGTERM)
	eventually(t, "it drains", func() bool { _, body := s.get("/readyz"); return strings.Contains(body, "draining") })
	s.signal(syscall.SIGINT)
	s.want(128 + int(syscall.SIGINT))
}

// TestServeShowsNoSecret checks that server and client do not print, log, send, or pass to a job
// the password of the store or the token of a client.
func TestServeShowsNoSecret(t *testing.T) {
	t.Parallel()
	const password = "xyzzy-password"
	redis := testsvc.Redis(t, "--requirepass", password)
	file := filepath.Join(t.TempDir(), "callers.json")
	_, secret, _ := run(t, "memory:", "serve", "add-caller", file, "shop", "--prefix", "", "--right", "acquire", "--right", "read")
	secret = strings.TrimSpace(secret)
	store := strings.Replace(redis.URL, "redis://", "redis://:"+password+"@", 1)
	s := serve(t, store, "--callers", file, "--log", "debug,requests")
	url := strings.Replace(s.urls[0], "http://", "http://:"+secret+"@", 1)
	var printed strings.Builder
	for _, args := range [][]string{
		{"run", "-v", "job", "--", "sh", "-c", "env | grep -v ^HOLDFAST_STORE="},
		{"ls", "-v"}, {"show", "job"}, {"doctor"}, {"doctor", "--json"}, {"token", "prune"}, // the server refuses the last
	} {
		status, stdout, stderr := run(t, url, args...)
		fmt.Fprintf(&printed, "%q: %d\n%s%s", args, status, stdout, stderr)
	}
	_, well := getAs(t, secret, s.urls[0]+"/v1/store")
	redis.Kill()
	_, away := getAs(t, secret, s.urls[0]+"/v1/store")
	if public := `"store":"` + redis.URL; !strings.Contains(well, public) || !strings.Contains(well, `"key":"server"`) || !strings.Contains(away, public) {
		t.Errorf("GET /v1/store: %s\n%s", well, away)
	}
	for _, args := range [][]string{{"run", "-n", "job", "--", "true"}, {"doctor"}} {
		status, stdout, stderr := run(t, url, args...)
		fmt.Fprintf(&printed, "%q: %d\n%s%s", args, status, stdout, stderr)
	}
	_, ready := s.get("/readyz")
	s.signal(syscall.SIGTERM)
	s.want(0)
	_, stdout, stderr := run(t, url, "ls")
	for what, text := range map[string]string{
		"the commands": printed.String() + stdout + stderr, "/readyz": ready, "/v1/store": well + away,
		"the server": read(t, s.stdout) + read(t, s.stderr),
	} {
		if strings.Contains(text, password) || strings.Contains(text, secret) {
			t.Errorf("%s show a secret:\n%s", what, text)
		}
	}
	if !strings.Contains(printed.String(), `["ls" "-v"]: 0`) {
		t.Errorf("the token was not taken:\n%s", printed.String())
	}
}
