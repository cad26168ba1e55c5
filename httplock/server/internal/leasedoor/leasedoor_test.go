package leasedoor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/wire"
)

// secret is the secret of all servers in these tests.
var secret = []byte("0123456789abcdef0123456789abcdef")

// A site is a server that the test calls without sockets.
type site struct {
	*testing.T
	server  *server.Server
	handler http.Handler
	header  http.Header // added to each request
}

func open(t *testing.T, engine driver.Engine) *site { return openWith(t, engine, server.Options{}) }

func openWith(t *testing.T, engine driver.Engine, opts server.Options) *site {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Secret == nil {
		opts.Secret = secret
	}
	s, err := server.New(engine, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return &site{T: t, server: s, handler: exchange.Recorded(t, s)}
}

// send sends body as JSON if it is not nil, with an Idempotency-Key if key is not empty.
func (s *site) send(ctx context.Context, method, target, key string, body any) *httptest.ResponseRecorder {
	s.Helper()
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			s.Fatal(err)
		}
	}
	r := httptest.NewRequestWithContext(ctx, method, "http://localhost"+target, &text)
	maps.Copy(r.Header, s.header)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// do sends a request whose reply must have the given status. It decodes the reply into v, if v is
// not nil.
func (s *site) do(status int, method, target, key string, body, v any) *httptest.ResponseRecorder {
	s.Helper()
	w := s.send(s.Context(), method, target, key, body)
	if w.Code != status {
		s.Fatalf("%s %s: %d %s, want %d", method, target, w.Code, w.Body, status)
	}
	if v != nil {
		if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
			s.Fatalf("%s %s: %s: %v", method, target, w.Body, err)
		}
	}
	return w
}

// refused sends a request that must be refused, and returns the problem.
func (s *site) refused(status int, code, method, target, key string, body any) wire.Problem {
	s.Helper()
	return s.problem(s.send(s.Context(), method, target, key, body), status, code)
}

// problem checks that w is a refusal, and returns the problem.
func (s *site) problem(w *httptest.ResponseRecorder, status int, code string) wire.Problem {
	s.Helper()
	var p wire.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		s.Errorf("%d %s: %v", w.Code, w.Body, err)
	}
	if w.Code != status || p.Code != code || p.Status != status || p.Detail == "" || w.Header().Get("Content-Type") != "application/problem+json" {
		s.Errorf("%d %s, want the problem %d %s", w.Code, w.Body, status, code)
	}
	return p
}

// lease acquires a lock that must be free.
func (s *site) lease(name, key string, req wire.LeaseRequest) (l wire.Lease) {
	s.Helper()
	req.Name = name
	w := s.do(http.StatusCreated, "POST", "/v1/leases", key, req, &l)
	if got := w.Header().Get("Fencing-Token"); l.FencingToken == 0 || got != strconv.FormatUint(l.FencingToken, 10) || got != l.FencingTokenStr {
		s.Errorf("the token is %d, %q, and %q in the header", l.FencingToken, l.FencingTokenStr, got)
	}
	return l
}
