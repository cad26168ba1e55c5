package door_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
)

// ask sends body to f as c, and returns the reply and the log.
func ask(c *caller.Caller, body string, f door.Func) (*httptest.ResponseRecorder, string) {
	var log bytes.Buffer
	h := &door.House{Log: slog.New(slog.NewTextHandler(&log, nil)), Limits: limit.New(limit.Max{})}
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.Handle(f).ServeHTTP(w, req.WithContext(caller.With(req.Context(), c)))
	return w, log.String()
}

func TestNeed(t *testing.T) {
	c := &caller.Caller{Name: "ci", Rights: caller.Acquire | caller.Read, Prefixes: []string{"ci/", "holdfast@"}}
	for _, want := range []struct {
		right caller.Rights
		name  string
		code  string // "" if allowed
	}{
		{caller.Acquire, "ci/build", ""},
		{caller.Acquire, "ci", "not-permitted"},
		{caller.Acquire, "web", "not-permitted"},
		{caller.Break, "ci/build", "not-permitted"},
		{caller.Read, "", "not-permitted"},
		{caller.Read, "holdfast@server/secret", "reserved-name"},
		{caller.Read, "holdfast@", "reserved-name"},
	} {
		w, log := ask(c, "", func(w http.ResponseWriter, r *door.Request) error {
			if may := r.Need(want.right, want.name) == nil; may != r.Shows(want.right, want.name) {
				t.Errorf("%q: Need and Shows say different things", want.name)
			}
			return r.Need(want.right, want.name)
		})
		switch {
		case want.code == "":
			if w.Code != http.StatusOK || log != "" {
				t.Errorf("%s %q: %d, logged %q, want it allowed", want.right, want.name, w.Code, log)
			}
		case w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"code":"`+want.code+`"`):
			t.Errorf("%s %q: %d %s, want %s", want.right, want.name, w.Code, w.Body, want.code)
		case want.name == "" && !strings.Contains(w.Body.String(), "to every name"):
			t.Errorf("%s to every name: %s", want.right, w.Body)
		case !strings.Contains(log, "msg=audit what=refused caller=ci") || !strings.Contains(log, want.code):
			t.Errorf("%s %q: logged %q", want.right, want.name, log)
		}
	}
}

func TestReadUpTo(t *testing.T) {
	body := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	for _, c := range []struct {
		body   string
		read   func(r *door.Request, v any) error
		status int
	}{
		{body(door.BodyLimit), (*door.Request).Read, http.StatusOK},
		{body(door.BodyLimit + 1), (*door.Request).Read, http.StatusRequestEntityTooLarge},
		{body(door.BodyLimit + 1), func(r *door.Request, v any) error { return r.ReadUpTo(v, door.BodyLimit+1) }, http.StatusOK},
	} {
		w, _ := ask(&caller.Caller{}, c.body, func(_ http.ResponseWriter, r *door.Request) error {
			var text string
			return c.read(r, &text)
		})
		if w.Code != c.status {
			t.Errorf("%d bytes: %d %s, want %d", len(c.body), w.Code, w.Body, c.status)
		}
	}
}

func TestExceededLimit(t *testing.T) {
	c := &caller.Caller{Name: "one"}
	limits := limit.New(limit.Max{Leases: 1})
	if err := limits.Leases(c, time.Minute, "a"); err != nil {
		t.Fatal(err)
	}
	w, _ := ask(c, "", func(http.ResponseWriter, *door.Request) error { return limits.Leases(c, time.Minute, "b") })
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "60" || !strings.Contains(w.Body.String(), `"code":"too-many-leases"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// TestBegunAnswerIsCut checks that the connection is cut when a handler fails in the middle of a
// reply, so that the client notices.
func TestBegunAnswerIsCut(t *testing.T) {
	for name, end := range map[string]func() error{
		"an error": func() error { return errors.New("the store is gone") },
		"a panic":  func() error { panic("fault") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); v != http.ErrAbortHandler {
					t.Errorf("%v, want net/http told to cut the connection", v)
				}
			}()
			ask(&caller.Caller{}, "", func(w http.ResponseWriter, _ *door.Request) error {
				w.WriteHeader(http.StatusOK)
				return end()
			})
		})
	}
}
