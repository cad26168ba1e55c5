//go:build web

package webtest

import (
	"log/slog"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/redislock"
)

// A site is holdfast serve in front of a Redis that writes history.
type site struct {
	t     testing.TB
	redis *testsvc.Server
	serve *testsvc.Server
	url   string // of the page
	store string // of the locks
}

// newSite starts a Redis and holdfast serve. args are more flags of serve.
func newSite(t testing.TB, args ...string) *site {
	t.Helper()
	s := &site{t: t, redis: testsvc.Redis(t)}
	s.store = s.redis.URL + "?history=1"
	s.serve = serveStore(t, s.store, args...)
	s.url = s.serve.URL + "/"
	return s
}

func serveStore(t testing.TB, store string, args ...string) *testsvc.Server {
	t.Helper()
	return testsvc.Program(t, shared.holdfast, "http://", func(addr, _ string) []string {
		return append([]string{"serve", "--store", store, "--listen", addr, "--log", "text,error"}, args...)
	})
}

// worker returns a client of the store, as a worker with a label.
func (s *site) worker(label string) *holdfast.Client {
	s.t.Helper()
	return s.workerAs(holdfast.Holder{Host: "web-1", PID: 812, User: "deploy", Program: "worker", Label: label})
}

func (s *site) workerAs(who holdfast.Holder) *holdfast.Client {
	s.t.Helper()
	c, err := holdfast.New(s.engine(), &holdfast.Options{Holder: who, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *site) engine() driver.Engine {
	s.t.Helper()
	e, err := redislock.Open(s.t.Context(), s.store)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = e.Close() })
	return e
}

// acquire acquires a lock, which its client releases when it is closed.
func acquire(t testing.TB, c *holdfast.Client, name string, o holdfast.AcquireOptions) *holdfast.Lease {
	t.Helper()
	o.MaxWait = patience
	l, err := c.Acquire(t.Context(), name, &o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
