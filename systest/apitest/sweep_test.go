package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// sweep sends the example of each operation to faulty servers, so that each described refusal of
// each operation is seen.
func (a *api) sweep(t *testing.T) {
	for what, bad := range map[string]struct {
		status  int
		engine  func(driver.Engine) driver.Engine
		options server.Options
		request func(r *http.Request)
		twice   bool // the second request counts; only operations without a body
		crowd   bool // bodies of the same caller are under way; only operations with a body
		store   bool // only operations that use the store
	}{
		"a body that is not JSON": {status: 400, request: func(r *http.Request) {
			with(r, strings.NewReader("{"), 1)
			r.URL.RawQuery = "limit=0&prefix=%E2%80%AE"
			if r.Method == http.MethodGet || r.Method == http.MethodDelete {
				r.URL.Path = strings.NewReplacer("orders/42", "\u202e", "invoice/2026-11", "\u202e").Replace(r.URL.Path)
			}
		}},
		"nobody is known":             {status: 401, options: server.Options{Callers: nobody{}}},
		"no rights":                   {status: 403, options: server.Options{Callers: somebody{}}},
		"a body that does not come":   {status: 408, request: func(r *http.Request) { with(r, tooSlow{}, 10) }},
		"a body that does not end":    {status: 413, request: func(r *http.Request) { with(r, io.LimitReader(spaces{}, 8<<20), 8<<20) }},
		"something else in the store": {status: 409, engine: hooked(func(context.Context) error { return driver.ErrKindMismatch })},
		"a body of text":              {status: 415, request: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }},
		"a strange host":              {status: 421, request: func(r *http.Request) { r.Host = "evil.example" }},
		"a second one":                {status: 429, options: server.Options{Limits: server.Limits{Leases: 1, Streams: 1}}, twice: true},
		"bodies that do not end":      {status: 429, crowd: true},
		"a long header":               {status: 431, request: func(r *http.Request) { r.Header.Set("X-Long", strings.Repeat("x", 20<<10)) }},
		"a fault of the server": {status: 500, request: func(r *http.Request) {
			if r.Body != http.NoBody {
				with(r, faulty{}, 10)
			}
		}, engine: hooked(func(ctx context.Context) error {
			if caller.From(ctx) == nil {
				return driver.ErrUnavailable // a request of the server itself
			}
			panic("fault")
		})},
		"an engine that can nothing": {status: 501, request: func(r *http.Request) {
			const lease, hold = `{"name":"orders/42","mode":"shared"}`, `{"for_ms":60000,"reason":"freeze","mode":"shared"}`
			switch {
			case r.URL.Path == "/v1/leases":
				with(r, strings.NewReader(lease), len(lease))
			case strings.HasSuffix(r.URL.Path, "/hold"):
				with(r, strings.NewReader(hold), len(hold))
			}
		}, engine: func(e driver.Engine) driver.Engine { return driver.Forward{Engine: e, Without: e.Capabilities()} }},
		"a store that is away":        {status: 503, store: true, engine: hooked(func(context.Context) error { return driver.ErrUnavailable })},
		"callers that cannot be told": {status: 503, options: server.Options{Callers: away{}}},
		"a store without an answer":   {status: 504, engine: hooked(func(context.Context) error { return errors.New("reset") })},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var engine driver.Engine = mem.New(&mem.Options{History: true})
				if bad.engine != nil {
					engine = bad.engine(engine)
				}
				options := bad.options
				options.Logger = slog.New(slog.DiscardHandler)
				options.Secret = bytes.Repeat([]byte("s"), 32)
				s, err := server.New(engine, &options)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close(context.Background())
				h := exchange.Recorded(t, s)
				for _, example := range a.examples() {
					answer := fmt.Sprint(bad.status, " ", example.operation.OperationID)
					if slices.Contains(elsewhere, answer) {
						continue
					}
					if example.responses.Value(fmt.Sprint(bad.status)) == nil || bad.store && example.responses.Value("500") == nil {
						continue
					}
					if hasBody := example.operation.RequestBody != nil; bad.twice && hasBody || bad.crowd && !hasBody {
						continue
					}
					r := example.request("1")
					if bad.request != nil {
						bad.request(r)
					}
					ctx, hangUp := context.WithTimeout(t.Context(), time.Minute)
					if bad.twice {
						go h.ServeHTTP(httptest.NewRecorder(), example.request("2").WithContext(ctx))
						synctest.Wait()
					}
					if bad.crowd {
						crowd(ctx, s)
					}
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r.WithContext(ctx))
					hangUp()
					synctest.Wait()
					if w.Code != bad.status {
						t.Errorf("%s %s: %d %.300s, want %d", r.Method, r.URL, w.Code, w.Body, bad.status)
					}
				}
			})
		})
	}
}

// elsewhere are responses that need more than a faulty server: the tests of the endpoints produce
// them, or rest.
var elsewhere = []string{
	"429 showLock",                  // of a request that waits
	"429 listLocks", "429 listOnce", // of many requests
	"504 completeOnce", "504 redeemToken", "504 releaseHold", "504 downgrade", // they read first, and a read succeeds
	"501 releaseHold",           // needs the lease of another user
	"403 signIn", "403 signOut", // needs no right, but other sites are refused
	"403 session", // needs no right, but other sites are refused
}

// crowd sends as many of the longest bodies as one caller may have under way. The bodies do not
// arrive before ctx ends.
func crowd(ctx context.Context, s http.Handler) {
	const length, inSum = 128 << 10, 8 << 20
	for range inSum / length {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:7420/v1/leases", http.NoBody)
		r.Header.Set("Content-Type", "application/json")
		r.RemoteAddr = "127.0.0.1:1"
		with(r, until{ctx}, length)
		go s.ServeHTTP(httptest.NewRecorder(), r)
	}
	synctest.Wait()
}

// until is a body that blocks until its context ends.
type until struct{ ctx context.Context }

func (u until) Read([]byte) (int, error) { <-u.ctx.Done(); return 0, u.ctx.Err() }

// with replaces the body of a request.
func with(r *http.Request, body io.Reader, length int) {
	r.Body, r.ContentLength = io.NopCloser(body), int64(length)
}

// An example is an operation with its example in the description.
type example struct {
	method, path string
	operation    *openapi3.Operation
	responses    *openapi3.Responses
}

// examples returns an example of each operation.
func (a *api) examples() (all []example) {
	for path, item := range a.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			all = append(all, example{method, path, operation, operation.Responses})
		}
	}
	slices.SortFunc(all, func(x, y example) int { return strings.Compare(x.path+x.method, y.path+y.method) })
	return all
}

// request returns the request of an example. Its key ends with n.
func (e example) request(n string) *http.Request {
	path, header := e.path, http.Header{}
	for _, p := range e.operation.Parameters {
		switch p.Value.In {
		case openapi3.ParameterInPath:
			path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", url.PathEscape(p.Value.Example.(string)))
		case openapi3.ParameterInHeader:
			if text, ok := p.Value.Example.(string); ok {
				header.Set(p.Value.Name, text+n)
			}
		}
	}
	var body io.Reader
	if b := e.operation.RequestBody; b != nil {
		header.Set("Content-Type", "application/json")
		body = bytes.NewReader(encoded(b.Value.Content.Get("application/json").Example))
	}
	r := httptest.NewRequest(e.method, path, body)
	r.Host, r.RemoteAddr = "127.0.0.1:7420", "127.0.0.1:1"
	maps.Copy(r.Header, header)
	return r
}

func encoded(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // v was decoded from JSON
	}
	return text
}

// hooked returns a function that makes an engine whose requests all fail.
func hooked(fail func(context.Context) error) func(driver.Engine) driver.Engine {
	return func(e driver.Engine) driver.Engine {
		return &hook.Engine{Forward: driver.Forward{Engine: e}, Each: func(ctx context.Context, _ hook.Request, _ func() error) error { return fail(ctx) }}
	}
}

// Sources of callers: nobody knows no caller, somebody returns callers without rights, and away
// fails.
type (
	nobody   struct{}
	somebody struct{}
	away     struct{}
)

func (nobody) Identify(*http.Request) (*caller.Caller, error) { return nil, nil }
func (somebody) Identify(*http.Request) (*caller.Caller, error) {
	return &caller.Caller{Name: "ada"}, nil
}
func (away) Identify(*http.Request) (*caller.Caller, error) { return nil, caller.ErrUnavailable }

// faulty is a body that panics.
type faulty struct{}

func (faulty) Read([]byte) (int, error) { panic("fault") }

// tooSlow is a body that does not arrive before the deadline of the connection.
type tooSlow struct{}

func (tooSlow) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// spaces is an infinite body.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte(" "), len(p))), nil }
