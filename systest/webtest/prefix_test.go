//go:build web

package webtest

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/dashboard"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// below is the prefix of the page in these tests.
const below = "/ops/locks"

// nginx starts an nginx that serves the page of a server below the prefix.
func nginx(t testing.TB, server string) *testsvc.Server {
	t.Helper()
	return testsvc.Nginx(t, "location "+below+"/ { proxy_pass "+server+"/; proxy_http_version 1.1; }")
}

// TestPrefix checks that the page works and receives events below a prefix, behind a proxy and as a
// handler of a program, with and without a slash at the end of the address.
func TestPrefix(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, url := range map[string]string{
		"nginx":       nginx(t, s.serve.URL).URL,
		"StripPrefix": mounted(t, s),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p *tab
			for _, end := range []string{"", "/"} {
				p = open(t, url+below+end)
				if got := eval[string](p, `() => location.pathname`); got != below+"/" {
					t.Errorf("%s%s is shown as %s", below, end, got)
				}
				showsLive(t, s, p, "prefix/"+name+end+"/42")
			}
			checkCompression(t, p, url+below+"/")
			checkStream(t, s, url+below+"/v1/events")
		})
	}
}

// showsLive acquires and releases a lock while the page is open, and checks that the page shows it.
func showsLive(t *testing.T, s *site, p *tab, name string) {
	t.Helper()
	p.show("locks")
	l := acquire(t, s.worker(name), name, holdfast.AcquireOptions{TTL: time.Minute, Reason: "behind a prefix"})
	p.awaitText(name)
	p.show("lock?name=" + escaped(name))
	p.awaitText("behind a prefix")
	p.awaitText(fmt.Sprint(l.Token()))
	p.show("locks")
	l.Release(t.Context())
	p.awaitNoText(name)
}

// mounted returns the URL of a server that has the page as a handler below the prefix.
func mounted(t testing.TB, s *site) string {
	t.Helper()
	d, err := dashboard.New(&dashboard.Options{Engine: s.engine()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.WithoutCancel(t.Context())) })
	mux := http.NewServeMux()
	mux.Handle(below+"/", http.StripPrefix(below, d))
	return serveHandler(t, mux)
}

// checkCompression checks that each file of the page is sent compressed to clients that accept it.
func checkCompression(t *testing.T, p *tab, page string) {
	t.Helper()
	files := eval[[]string](p, `() => performance.getEntriesByType("resource").map((e) => e.name).filter((name) => /\.(js|css)$/.test(name))`)
	if len(files) != 2 { // one script and one style sheet
		t.Errorf("the page is made of %q", files)
	}
	for _, file := range append(files, page) {
		r := get(t, file, "Accept-Encoding", "gzip")
		text, err := gzip.NewReader(r.Body)
		if err != nil || r.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s comes as %q: %v", file, r.Header.Get("Content-Encoding"), err)
			continue
		}
		if n, err := io.Copy(io.Discard, text); n == 0 || err != nil {
			t.Errorf("%s: %d bytes, %v", file, n, err)
		}
	}
}

// checkStream checks that events arrive one by one, and not only when a buffer is full.
func checkStream(t *testing.T, s *site, url string) {
	t.Helper()
	r := get(t, url, "Accept", "text/event-stream")
	if kind := r.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		t.Fatalf("events come as %q: %s", kind, r.Status)
	}
	lines := make(chan string)
	go func() { // ends with the response
		defer close(lines)
		for in := bufio.NewScanner(r.Body); in.Scan(); {
			lines <- in.Text()
		}
	}()
	c := s.worker("streamed")
	for i := range 3 {
		name := fmt.Sprintf("%s/%d", t.Name(), i)
		acquire(t, c, name, holdfast.AcquireOptions{TTL: time.Minute})
		awaitLine(t, lines, name)
	}
}

func awaitLine(t *testing.T, lines <-chan string, text string) {
	t.Helper()
	for late := time.After(patience); ; {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatalf("the stream has ended before %q", text)
			}
			if strings.Contains(line, text) {
				return
			}
		case <-late:
			t.Fatalf("no event of %q within %s", text, patience)
		}
	}
}

// get sends a request with a header. It closes the response at the end of the test.
func get(t testing.TB, url, key, value string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(key, value)
	answer, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}
