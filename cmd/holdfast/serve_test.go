//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// A served is a run of holdfast serve.
type served struct {
	*process
	urls []string
}

// serve starts a server on a store, and returns when it listens. Without --listen it listens at a
// free port.
func serve(t *testing.T, store string, flags ...string) *served {
	t.Helper()
	want := strings.Count(strings.Join(flags, " "), "--listen")
	if want == 0 {
		flags, want = append(flags, "--listen", "127.0.0.1:0"), 1
	}
	s := &served{process: start(t, store, append([]string{"serve", "--drain", "5s"}, flags...)...)}
	eventually(t, "the server listens", func() bool {
		select {
		case <-s.done:
			t.Fatalf("it has ended with status %d: %s", s.wait(), read(t, s.stderr))
		default:
		}
		s.urls = strings.Fields(read(t, s.stdout))
		return len(s.urls) == want
	})
	return s
}

// listening waits until the log has the URL at which the server listens for what, and returns it.
func (s *served) listening(what string) (url string) {
	s.t.Helper()
	says := `"listening for ` + what + `","url":"`
	s.awaitStderr(says)
	_, at, _ := strings.Cut(read(s.t, s.stderr), says)
	url, _, _ = strings.Cut(at, `"`)
	return url
}

// get sends a request to the server's first address.
func (s *served) get(path string) (status int, body string) {
	s.t.Helper()
	return get(s.t, http.DefaultClient, s.urls[0]+path)
}

func get(t *testing.T, client *http.Client, url string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// wantNotForPages checks that requests for url from pages of other sites are refused.
func wantNotForPages(t *testing.T, url string) {
	t.Helper()
	for header, want := range map[string]int{"Host": http.StatusMisdirectedRequest, "Sec-Fetch-Site": http.StatusForbidden} {
		status, body := get(t, &http.Client{Transport: with{header, map[string]string{"Host": "rebound.example.com", "Sec-Fetch-Site": "cross-site"}[header]}}, url)
		if status != want {
			t.Errorf("%s with another %s: %d %s, want %d", url, header, status, body, want)
		}
	}
}

// with sends requests with a header.
type with struct{ header, value string }

func (w with) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Header.Set(w.header, w.value); w.header == "Host" {
		r.Host = w.value
	}
	return http.DefaultTransport.RoundTrip(r)
}

// overSocket returns a client of a server at a unix socket.
func overSocket(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
		DisableKeepAlives: true,
	}}
}

// TestServeListens checks that a server listens at each named address, at the ports that it prints,
// and at a socket for its user and group only. TERM ends it with status 0, and removes the socket.
func TestServeListens(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	s := serve(t, sqlite(t), "--listen", "127.0.0.1:0", "--listen", "unix://"+socket, "--listen", "127.0.0.1:0")
	for _, url := range []string{s.urls[0], s.urls[2]} {
		if status, body := get(t, http.DefaultClient, url+"/healthz"); status != 200 || body != "ok\n" {
			t.Errorf("%s: %d %s", url, status, body)
		}
	}
	if status, body := get(t, overSocket(socket), "http://holdfast/readyz"); status != 200 || s.urls[1] != "http+unix://"+socket {
		t.Errorf("%s: %d %s", s.urls[1], status, body)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v, %v, want mode 0660", info, err)
	}
	s.signal(syscall.SIGTERM)
	s.want(0)
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket has stayed (%v)", err)
	}
}

// TestServeTakesOverAStaleSocket checks that a server replaces the socket of a killed server, but
// neither a socket at which another server answers nor a file.
func TestServeTakesOverAStaleSocket(t *testing.T) {
	t.Parallel()
	store, socket := sqlite(t), filepath.Join(t.TempDir(), "s")
	first := serve(t, store, "--listen", "unix://"+socket)
	if stderr := wantRun(t, 69, store, "serve", "--listen", "unix://"+socket); !strings.Contains(stderr, "answers") {
		t.Errorf("it does not say that another one is there: %s", stderr)
	}
	if status, _ := get(t, overSocket(socket), "http://holdfast/healthz"); status != 200 {
		t.Error("the first server is gone")
	}
	first.signal(syscall.SIGKILL)
	first.want(128 + int(syscall.SIGKILL))
	serve(t, store, "--listen", "unix://"+socket)
	if status, _ := get(t, overSocket(socket), "http://holdfast/healthz"); status != 200 {
		t.Error("the second server does not answer")
	}

	file := filepath.Join(t.TempDir(), "f")
	write(t, file, "precious")
	wantRun(t, 78, store, "serve", "--listen", "unix://"+file)
	if read(t, file) != "precious" {
		t.Error("a file was overwritten")
	}
}

// TestServeCannotListen checks that a path at which no server can ever listen is a wrong
// configuration. An address in use is not: it may become free.
func TestServeCannotListen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), "")
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tcp.Close() }()
	for address, status := range map[string]int{
		"unix://" + dir + "/none/s": 78,
		"unix://" + dir + "/f/s":    78,
		"unix://" + dir:             78,
		tcp.Addr().String():         69,
	} {
		for _, flags := range [][]string{{"--listen", address}, {"--listen", "127.0.0.1:0", "--metrics-listen", address}} {
			if stderr := wantRun(t, status, "memory:", append([]string{"serve"}, flags...)...); !strings.Contains(stderr, strings.TrimPrefix(address, "unix://")) {
				t.Errorf("%q: the address is not in %q", flags, stderr)
			}
		}
	}
}

// TestServeIsNotReady checks that a server is ready only while its store answers.
func TestServeIsNotReady(t *testing.T) {
	t.Parallel()
	redis := testsvc.Redis(t)
	s := serve(t, redis.URL)
	if status, body := s.get("/readyz"); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	redis.Stop()
	began := time.Now()
	eventually(t, "it is not ready", func() bool { status, _ := s.get("/readyz"); return status == 503 })
	if _, body := s.get("/readyz"); !strings.Contains(body, `"code":"store-unavailable"`) || strings.Contains(body, redis.URL) {
		t.Errorf("after %s: %s", time.Since(began), body)
	}
	if status, _ := s.get("/healthz"); status != 200 {
		t.Error("it says that it does not live")
	}
	redis.Cont()
	eventually(t, "it is ready again", func() bool { status, _ := s.get("/readyz"); return status == 200 })
}

// TestServeProfiles checks that go tool pprof can read the metrics listener if only this host can
// reach it.
func TestServeProfiles(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	s := serve(t, sqlite(t), "--metrics-listen", "127.0.0.1:0")
	url := strings.TrimSuffix(s.listening("metrics"), "metrics") + "debug/pprof/"
	for path, want := range map[string]string{"heap": "Type: inuse_space", "profile?seconds=1": "Type: cpu"} {
		out, err := exec.Command("go", "tool", "pprof", "-top", url+path).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
	if status, body := get(t, http.DefaultClient, url+"goroutine?debug=1"); status != 200 || !strings.Contains(body, "goroutine profile:") {
		t.Errorf("%d %s", status, body)
	}
	wantNotForPages(t, url+"heap")
	public := serve(t, sqlite(t), "--metrics-listen", "0.0.0.0:0")
	url = strings.TrimSuffix(public.listening("metrics"), "metrics") + "debug/pprof/heap"
	if status, _ := get(t, http.DefaultClient, strings.NewReplacer("0.0.0.0", "127.0.0.1", "[::]", "127.0.0.1").Replace(url)); status != 404 {
		t.Errorf("an address that other hosts reach has profiles: %d", status)
	}
}

// TestServeMetrics checks that promtool finds no fault in the metrics, and that they match the
// lists in docs/server.md and docs/metrics.md.
func TestServeMetrics(t *testing.T) {
	t.Parallel()
	s := serve(t, testsvc.Redis(t).URL+"?history=1")
	s.get("/nowhere")
	status, text := s.get("/metrics")
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	for _, line := range []string{
		`holdfast_http_requests_total{route="none",status="404"} 1`, `holdfast_ready 1`, `holdfast_draining 0`,
		`holdfast_http_streams 0`, `holdfast_acquires_total{mode="exclusive",result="acquired"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is not exposed:\n%s", line, text)
		}
	}
	page := read(t, filepath.Join("..", "..", "docs", "server.md"))
	elsewhere := read(t, filepath.Join("..", "..", "docs", "metrics.md"))
	for _, m := range regexp.MustCompile("`(holdfast_[a-z_]+|go_[a-z_]+|process_[a-z_]+)`").FindAllStringSubmatch(page+elsewhere, -1) {
		switch name := m[1]; {
		case name == "holdfast_tls_certificate_expiry_timestamp_seconds", // the server has no certificate
			name == "holdfast_acquire_duration_seconds", name == "holdfast_hold_duration_seconds", // nothing was held
			name == "holdfast_last_run_timestamp_seconds", // no server runs schedules
			strings.HasPrefix(name, "process_") && runtime.GOOS != "linux":
		case !strings.Contains(text, "# TYPE "+name+" "):
			t.Errorf("a page has %s, which is not exposed", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (holdfast_\w+)`).FindAllStringSubmatch(text, -1) {
		if name := "`" + m[1] + "`"; !strings.Contains(page, name) && !strings.Contains(elsewhere, name) {
			t.Errorf("no page has %s", m[1])
		}
	}
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = strings.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// TestServePage checks that the server has the page at its root, with its files, and that the
// status of an unknown file is 404.
func TestServePage(t *testing.T) {
	t.Parallel()
	s := serve(t, sqlite(t))
	if status, body := s.get("/"); status != 200 || !strings.Contains(body, `src="main.js"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := s.get("/main.js"); status != 200 || !strings.Contains(body, "preact") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := s.get("/nothing.js"); status != 404 || !strings.Contains(body, `"code":"not-found"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, text := s.get("/metrics"); status != 200 || !strings.Contains(text, `holdfast_http_requests_total{route="GET /{file}",status="200"} 2`) {
		t.Errorf("%d %s", status, text)
	}
}

// TestServeMetricsElsewhere checks that metrics with an address of their own are only there.
func TestServeMetricsElsewhere(t *testing.T) {
	t.Parallel()
	s := serve(t, sqlite(t), "--metrics-listen", "127.0.0.1:0")
	url := s.listening("metrics")
	if status, text := get(t, http.DefaultClient, url); status != 200 || !strings.Contains(text, "holdfast_ready 1\n") {
		t.Errorf("%s: %d %s", url, status, text)
	}
	wantNotForPages(t, url)
	if status, _ := s.get("/metrics"); status != 404 {
		t.Errorf("beside the locks: %d", status)
	}
	if status, _ := get(t, http.DefaultClient, strings.TrimSuffix(url, "metrics")+"readyz"); status != 200 {
		t.Errorf("no /readyz there: %d", status)
	}
}

// getAs is get with a token.
func getAs(t *testing.T, token, url string) (status int, body string) {
	t.Helper()
	return get(t, &http.Client{Transport: bearer(token)}, url)
}

// A bearer sends a token with every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestServeCallers checks that a server at an address that other hosts can reach accepts only its
// callers. A new caller is accepted without a restart or HUP, and no token is in the log.
func TestServeCallers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "callers.json")
	add := func(name, prefix string) string {
		t.Helper()
		status, token, stderr := run(t, "memory:", "serve", "add-caller", file, name, "--prefix", prefix, "--right", "read")
		if status != 0 {
			t.Fatalf("%d %s", status, stderr)
		}
		return strings.TrimSpace(token)
	}
	ops := add("ops", "")
	s := serve(t, sqlite(t), "--listen", ":0", "--callers", file)
	url := "http://127.0.0.1" + s.urls[0][strings.LastIndex(s.urls[0], ":"):]
	s.awaitStderr("the network can read all requests")
	shop := add("shop", "shop/")
	for _, c := range []struct {
		token string
		want  int
	}{{ops, 200}, {"wrong" + ops, 401}, {shop, 403}} {
		eventually(t, fmt.Sprintf("metrics are answered %d", c.want), func() bool {
			status, _ := getAs(t, c.token, url+"/metrics")
			return status == c.want
		})
	}
	if status, _ := get(t, http.DefaultClient, url+"/metrics"); status != 401 {
		t.Errorf("without a token: %d", status)
	}
	if status, _ := get(t, http.DefaultClient, url+"/readyz"); status != 200 {
		t.Errorf("a client that asks whether it is ready: %d", status)
	}
	write(t, file, "{}")
	s.signal(syscall.SIGHUP)
	eventually(t, "nobody is known any more", func() bool { status, _ := getAs(t, ops, url+"/metrics"); return status == 401 })
	write(t, file, "{")
	s.signal(syscall.SIGHUP)
	s.awaitStderr("not reloaded")
	if log := read(t, s.stderr); strings.Contains(log, ops) || strings.Contains(log, shop) {
		t.Errorf("a token is in the log:\n%s", log)
	}
	wantRun(t, 78, sqlite(t), "serve", "--callers", file)
}

// TestServeInsecure checks that --insecure lets every caller in.
func TestServeInsecure(t *testing.T) {
	t.Parallel()
	s := serve(t, sqlite(t), "--listen", ":0", "--insecure")
	if status, _ := get(t, http.DefaultClient, "http://127.0.0.1"+s.urls[0][strings.LastIndex(s.urls[0], ":"):]+"/metrics"); status != 200 {
		t.Errorf("%d", status)
	}
}

// TestServeLogs checks that the log is JSON by default, and that --log sets format and level.
func TestServeLogs(t *testing.T) {
	t.Parallel()
	s := serve(t, sqlite(t))
	var line struct{ Level, Msg, URL string }
	if err := json.Unmarshal([]byte(read(t, s.stderr)), &line); err != nil || line.Msg != "listening" || line.URL != s.urls[0] {
		t.Errorf("%v: %+v", err, line)
	}
	s = serve(t, sqlite(t), "--log", "text,warn")
	if log := read(t, s.stderr); log != "" {
		t.Errorf("--log text,warn: %s", log)
	}
}
