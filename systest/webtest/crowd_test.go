//go:build web

package webtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-locks/holdfast"
)

// views returns the addresses of all views; name is the lock of the view of one lock.
func views(name string) []string {
	return []string{"overview", "locks", "lock?name=" + escaped(name), "holders", "blocked", "jobs", "once", "onetime", "events"}
}

// A crowd fills a store so that every view shows something.
type crowd struct {
	s      *site
	text   string          // is in all texts that clients choose
	held   *holdfast.Lease // of the lock with the name text
	broken uint64          // the token of the lease that was broken
}

// newCrowd fills a store: held locks in each mode, a queue, a lock that a person holds, one that is
// kept closed, a foreign one, two processes that wait for each other, losses, do-once keys and
// one-time tokens. text is in all their names and reasons.
func newCrowd(t testing.TB, s *site, text string) *crowd {
	t.Helper()
	c := &crowd{s: s, text: text}
	name := func(kind string) string { return cut(kind+"/"+text, 512) }
	who := holdfast.Holder{Host: cut(text, 200), PID: 812, User: cut(text, 200), Program: cut(text, 200), Label: cut(text, 200)}
	a, b := s.workerAs(who), s.worker("second "+cut(text, 100))
	o := holdfast.AcquireOptions{TTL: time.Minute, Reason: cut(text, 512), Labels: map[string]string{cut("k "+text, 100): cut(text, 512)}}

	c.held = acquire(t, a, cut(text, 512), o)
	waitFor(t, b, cut(text, 512), o)
	o.Mode = holdfast.Shared
	acquire(t, a, name("shared"), o)
	acquire(t, b, name("shared"), o)
	o.Mode = holdfast.Permits(2, 5)
	acquire(t, a, name("pool"), o)
	o.Mode = holdfast.Exclusive

	person := s.workerAs(holdfast.Holder{Host: cut(text, 200), User: cut(text, 200), Person: true})
	frozen := o
	frozen.KeepAlive = holdfast.KeepAliveOff
	acquire(t, person, name("frozen"), frozen)
	closed := o
	closed.MinHold = time.Minute
	acquire(t, a, name("closed"), closed).Release(t.Context())
	if _, err := s.redis.Do("SET", name("foreign"), text, "NX", "PX", "60000"); err != nil {
		t.Fatal(err)
	}

	acquire(t, a, name("left"), o)
	acquire(t, b, name("right"), o)
	waitFor(t, a, name("right"), o)
	waitFor(t, b, name("left"), o)

	gone := acquire(t, a, name("broken"), o)
	c.broken = gone.Token()
	if _, err := b.Break(t.Context(), name("broken"), &holdfast.BreakOptions{Token: gone.Token(), Reason: cut(text, 200), Author: cut(text, 100)}); err != nil {
		t.Fatal(err)
	}
	short := o
	short.TTL, short.KeepAlive = 50*time.Millisecond, holdfast.KeepAliveOff
	acquire(t, a, name("expired"), short)

	if _, err := a.Once(t.Context(), name("done"), &holdfast.OnceOptions{Reason: o.Reason}, func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte(text), nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := a.OnceBegin(t.Context(), name("doing"), &holdfast.OnceOptions{Reason: o.Reason}); err != nil {
		t.Fatal(err)
	}
	s.post("v1/onetime", map[string]any{"payload": "a secret of somebody", "ttl_ms": 60000})
	return c
}

// waitFor makes a client wait for a lock until the test ends. It returns when the client is queued.
func waitFor(t testing.TB, c *holdfast.Client, name string, o holdfast.AcquireOptions) {
	t.Helper()
	queued := make(chan struct{}, 1)
	done := make(chan struct{})
	o.OnWait = func(w holdfast.WaitState) {
		select {
		case queued <- struct{}{}:
		default:
		}
	}
	ctx := t.Context()
	go func() {
		defer close(done)
		_, _ = c.Acquire(ctx, name, &o) // the end of the test may cancel it
	}()
	t.Cleanup(func() { <-done })
	select {
	case <-queued:
	case <-time.After(patience):
		t.Fatalf("nobody waits for %q", name)
	}
}

// post sends a request to the server, without the page.
func (s *site) post(path string, body any) *http.Response {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.Post(s.serve.URL+"/"+path, "application/json", strings.NewReader(string(text)))
	if err != nil {
		s.t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode >= 300 {
		s.t.Fatalf("%s: %s", path, r.Status)
	}
	return r
}

// cut returns the first n bytes of text, or fewer, so that it cuts no character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// escaped returns a text with each byte escaped, for an address.
func escaped(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}
