package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/codeblock"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestExample checks that only operators see the page and may act, and that Shutdown does not wait
// for an open page.
func TestExample(t *testing.T) {
	engine := mem.New(&mem.Options{History: true})
	defer engine.Close()
	client, err := holdfast.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tokens := map[string]uint64{}
	for _, name := range []string{"orders/42", "payments/7"} {
		l, err := client.Acquire(t.Context(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = l.Token()
	}
	page, err := newPage(engine)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(routes(page, []byte("open sesame")))
	srv.Config.RegisterOnShutdown(func() { _ = page.Close(context.Background()) })
	srv.Start()
	ask := func(method, path, password, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.SetBasicAuth("ann", password)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	want := func(answer *http.Response, status int, text string) {
		t.Helper()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != status || !strings.Contains(string(body), text) {
			t.Errorf("%s: %s, %s: %v", answer.Request.URL, answer.Status, body, err)
		}
	}
	breaking := func(name string) string { return fmt.Sprintf(`{"fencing_token": %d, "reason": "stuck"}`, tokens[name]) }
	want(ask("GET", "/ops/locks", "open sesame", ""), 200, `src="main.js"`)
	want(ask("GET", "/ops/locks/v1/locks", "open sesame", ""), 200, "orders/42")
	want(ask("GET", "/ops/locks/v1/locks", "a guess", ""), 401, "")
	want(ask("POST", "/ops/locks/v1/locks/~/break?name=payments%2F7", "open sesame", breaking("payments/7")), 403, "their own team")
	want(ask("POST", "/ops/locks/v1/locks/~/break?name=orders%2F42", "open sesame", breaking("orders/42")), 200, `"author":"ann"`)

	events := ask("GET", "/ops/locks/v1/events", "open sesame", "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := srv.Config.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown has waited for a page that is open: %v", err)
	}
	if _, err := io.Copy(io.Discard, events.Body); err != nil {
		t.Logf("the stream of events broke off: %v", err)
	}
}

// TestPageShowsExample checks that docs/dashboard.md shows a part of this program unchanged.
func TestPageShowsExample(t *testing.T) {
	const page = "../../docs/dashboard.md"
	text, err1 := os.ReadFile(page)
	code, err2 := os.ReadFile("main.go")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	blocks, _ := codeblock.Find(page, string(text))
	for _, b := range blocks {
		if b.Kind == "go" && strings.TrimSpace(b.Text) != "" && strings.Contains(string(code), strings.TrimSpace(b.Text)) {
			return
		}
	}
	t.Error("no block of the page is from this program")
}
