package leasedoor_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestPanicOnAnotherGoroutine checks that a panic of the engine ends only its own request, on
// whichever goroutine it happens. It is logged without its value.
func TestPanicOnAnotherGoroutine(t *testing.T) {
	for name, c := range map[string]struct {
		method string // the method that panics
		ask    func(s *site, l wire.Lease)
	}{
		"release": {"Release", func(s *site, l wire.Lease) {
			s.refused(500, "internal", "POST", "/v1/leases/release", "", ref(l))
		}},
		"releases": {"Release", func(s *site, l wire.Lease) {
			other := s.lease("b", otherKey, wire.LeaseRequest{})
			s.refused(500, "internal", "POST", "/v1/leases/release", "", wire.LeaseRefs{Leases: []wire.LeaseRef{{Name: "b", LeaseID: other.LeaseID}, {Name: "a", LeaseID: l.LeaseID}}})
		}},
		"renewals in parts": {"Extend", func(s *site, l wire.Lease) {
			other := s.lease("b", otherKey, wire.LeaseRequest{})
			s.refused(500, "internal", "POST", "/v1/leases/renew", "", wire.LeaseRefs{Leases: []wire.LeaseRef{{Name: "b", LeaseID: other.LeaseID}, {Name: "a", LeaseID: l.LeaseID}}})
		}},
		"stream": {"Acquire", func(s *site, _ wire.Lease) {
			stream := s.hold("", otherKey, wire.LeaseRequest{Name: "b"})
			<-stream.done
			if stream.status != http.StatusInternalServerError {
				s.Errorf("the stream has the status %d", stream.status)
			}
		}},
		"end of a stream, later": {"Release", func(s *site, _ wire.Lease) {
			stream := s.hold("&direct=0", otherKey, wire.LeaseRequest{Name: "b"})
			stream.last("acquired")
			stream.close()
			time.Sleep(time.Minute)
		}},
		"refreshes of places": {"Refresh", func(s *site, _ wire.Lease) {
			s.async().do(http.StatusAccepted, "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "a", WaitMS: 30_000}, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				var faulty atomic.Bool
				engine := &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, r hook.Request, send func() error) error {
					if faulty.Load() && r.Method == c.method {
						panic("marker-of-a-secret")
					}
					return send()
				}}
				s := openWith(t, &parts{Forward: driver.Forward{Engine: engine}}, server.Options{Callers: ann{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				l := s.lease("a", key, wire.LeaseRequest{TTLMS: 600_000})
				faulty.Store(true)
				c.ask(s, l)
				faulty.Store(false)
				s.do(http.StatusNoContent, "POST", "/v1/leases/check", "", ref(l), nil)
				synctest.Wait() // the log is written
				if text := log.String(); !strings.Contains(text, "level=ERROR msg=panic what=string") || !strings.Contains(text, "panic_test.go") || strings.Contains(text, "marker") {
					t.Errorf("logged %s", text)
				}
			})
		})
	}
}
