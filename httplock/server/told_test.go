package server_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestStoreIsNotNamed checks that an error shows the address of the store only to callers who may
// read every name.
func TestStoreIsNotNamed(t *testing.T) {
	const address = "192.0.2.7:6379"
	whole, named := &caller.Caller{Name: "whole", Rights: caller.All}, 0
	part := &caller.Caller{Name: "part", Rights: caller.All, Prefixes: []string{"bank/"}}
	for _, class := range []error{driver.ErrUnavailable, driver.ErrPermission, io.ErrUnexpectedEOF} {
		failure := fmt.Errorf("%w: dial tcp %s: connection refused", class, address)
		for _, e := range endpoints {
			for _, c := range []*caller.Caller{part, whole} {
				synctest.Test(t, func(t *testing.T) {
					engine := &hook.Engine{
						Forward: driver.Forward{Engine: mem.New(&mem.Options{History: true})},
						Each:    func(context.Context, hook.Request, func() error) error { return failure },
					}
					s := &site{}
					callers := sourceFunc(func(*http.Request) (*caller.Caller, error) { return c, nil })
					srv, err := server.New(engine, &server.Options{Callers: callers, Secret: []byte(strings.Repeat("s", 32)), Logger: slog.New(slog.DiscardHandler)})
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = srv.Close(context.Background()) }()
					s.Handler = srv
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					body := strings.NewReplacer("TOKEN", "7", "ID", strings.Trim(other, `"`)).Replace(e.body)
					w := s.send(s.request(ctx, "", e.method(), e.path(), body))
					switch says := strings.Contains(w.Body.String(), address); {
					case says && c == part:
						t.Errorf("%s, %v: %d %s", e.path(), class, w.Code, w.Body)
					case says:
						named++
					}
				})
			}
		}
	}
	if named < 60 {
		t.Errorf("it is named %d times to those who may read all: are there failures?", named)
	}
}

// TestStoreIsNotNamedByStreams checks the same for a stream whose lease could not be kept, at once
// or later.
func TestStoreIsNotNamedByStreams(t *testing.T) {
	const address = "192.0.2.7:6379"
	part := &caller.Caller{Name: "part", Rights: caller.All, Prefixes: []string{"bank/"}}
	for n := range 12 {
		class, extends := []error{driver.ErrUnavailable, driver.ErrPermission, io.ErrUnexpectedEOF}[n%3], n/3%2
		query := []string{"?hold=1", "?hold=1&renew=client"}[n/6]
		synctest.Test(t, func(t *testing.T) {
			engine := &hook.Engine{
				Forward: driver.Forward{Engine: mem.New(nil)},
				Each: func(_ context.Context, req hook.Request, send func() error) error {
					if req.Method == "Extend" {
						extends--
					}
					if req.Method == "Acquire" || extends >= 0 {
						return send()
					}
					return fmt.Errorf("%w: dial tcp %s: connection refused", class, address)
				},
			}
			callers := sourceFunc(func(*http.Request) (*caller.Caller, error) { return part, nil })
			srv, err := server.New(engine, &server.Options{Callers: callers, Secret: []byte(strings.Repeat("s", 32)), Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = srv.Close(context.Background()) }()
			s := &site{Handler: srv}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			w := s.send(s.request(ctx, "", http.MethodPost, "/v1/leases"+query, `{"name":"bank/new","ttl_ms":10000}`))
			if text := w.Body.String(); n < 6 && !strings.Contains(text, `"event":"lost"`) || strings.Contains(text, address) {
				t.Errorf("%s, %v: %d %s", query, class, w.Code, text)
			}
		})
	}
}
