package storedoor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

// A store can be diagnosed, and takes 5 ms for a round trip. It counts its requests.
type store struct {
	hook.Engine
	mu         sync.Mutex
	trips      int
	diagnoses  int
	fail       func(ctx context.Context) error // of each request; nil: no error
	diagnosing func(ctx context.Context) error // of Diagnose; nil: no error
}

func newStore() *store {
	s := &store{}
	s.Engine.Engine = driver.Forward{Engine: mem.New(nil), Without: driver.Capabilities{OneTime: true}}
	s.Each = func(ctx context.Context, r hook.Request, send func() error) error {
		s.mu.Lock()
		if r.Method == "Inspect" {
			s.trips++
		}
		fail := s.fail
		s.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		if fail != nil {
			return fail(ctx)
		}
		return send()
	}
	return s
}

func (s *store) Capabilities() driver.Capabilities {
	c := s.Engine.Capabilities()
	c.Diagnose = true
	return c
}

func (s *store) Diagnose(ctx context.Context, req driver.DiagnoseRequest) (driver.Diagnosis, error) {
	s.mu.Lock()
	s.diagnoses++
	f := s.diagnosing
	s.mu.Unlock()
	if f != nil {
		if err := f(ctx); err != nil {
			return driver.Diagnosis{}, err
		}
	}
	return driver.Diagnosis{Findings: []driver.Finding{
		{Key: "server", Server: "10.0.0.1:6379", Text: "a master"},
		{Key: "round_trip", Level: driver.Warn, Text: fmt.Sprintf("for leases of %s", req.TTL), Measures: map[string]time.Duration{"round_trip": time.Millisecond}},
	}}, nil
}

// set sets the functions that make requests and diagnoses fail.
func (s *store) set(fail, diagnosing func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.diagnosing = fail, diagnosing
}

func (s *store) asked() (trips, diagnoses int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trips, s.diagnoses
}

func always(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func fault(context.Context) error { panic("marker-of-a-secret") }

// A site is a server with its log.
type site struct {
	*testing.T
	server  *server.Server
	handler http.Handler
	log     *bytes.Buffer
}

func open(t *testing.T, engine driver.Engine, opts server.Options) *site {
	t.Helper()
	s := &site{T: t, log: &bytes.Buffer{}}
	opts.Logger, opts.Secret = slog.New(slog.NewTextHandler(s.log, nil)), bytes.Repeat([]byte("s"), 32)
	var err error
	if s.server, err = server.New(engine, &opts); err != nil {
		t.Fatal(err)
	}
	s.handler = exchange.Recorded(t, s.server)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.server.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *site) send() *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, httptest.NewRequestWithContext(s.Context(), "GET", "http://localhost/v1/store", nil))
	return w
}

// show requests the state of the store. The reply must arrive within 2 s.
func (s *site) show() (v wire.Store) {
	s.Helper()
	began := time.Now()
	w := s.send()
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != http.StatusOK {
		s.Errorf("%d %s", w.Code, w.Body)
	}
	if took := time.Since(began); took > 2*time.Second {
		s.Errorf("took %s", took)
	}
	return v
}

// says returns the reply in short form.
func says(v wire.Store) string {
	text := "away: " + v.Reason
	if v.Answers {
		text = fmt.Sprintf("%.0f ms", *v.RoundTripMS)
	} else if v.RoundTripMS != nil {
		text += " in a round trip"
	}
	if v.Diagnosis != nil {
		text += fmt.Sprintf("; %s %d s ago", v.Diagnosis.Level, *v.CheckedAgoMS/1000)
	} else if v.CheckedAgoMS != nil {
		text += "; checked"
	}
	if v.Undiagnosed != "" {
		text += "; " + v.Undiagnosed
	}
	return text
}

func (s *site) want(want string) {
	s.Helper()
	if got := says(s.show()); got != want {
		s.Errorf("says %q, want %q", got, want)
	}
}

// TestStore checks that the reply has the name of the store, its features and its condition.
func TestStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newStore(), server.Options{Store: "redis://10.0.0.1:6379/2"})
		v := s.show()
		if v.Store != "redis://10.0.0.1:6379/2" || !v.Features.Break || !v.Features.Diagnose || v.Features.OneTime || v.Features.History || v.History {
			t.Errorf("%+v", v)
		}
		if got := says(v); got != "5 ms; warn 0 s ago" {
			t.Errorf("says %q", got)
		}
		if d := v.Diagnosis; d.Store != v.Store || d.TTLMS != 30_000 || len(d.Findings) != 2 || d.Findings[0].Server != "10.0.0.1:6379" ||
			d.Findings[1].Text != "for leases of 30s" || d.Findings[1].Measures["round_trip_ms"] != 1 {
			t.Errorf("%+v", d)
		}
		s = open(t, mem.New(&mem.Options{History: true}), server.Options{})
		if v = s.show(); v.Store != "mem" || !v.History || !v.Features.History || says(v) != "0 ms; the store cannot be diagnosed" {
			t.Errorf("%+v", v)
		}
		e := mem.New(nil)
		s = open(t, driver.Forward{Engine: e, Without: e.Capabilities()}, server.Options{})
		if v = s.show(); v.Features != (wire.Features{}) || !v.Answers {
			t.Errorf("%+v", v)
		}
	})
}

// TestManyAsk checks that many clients cause one request a second and one diagnosis a minute.
func TestManyAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newStore()
		s := open(t, e, server.Options{})
		e.set(nil, func(context.Context) error {
			time.Sleep(3 * time.Second)
			return nil
		})
		const pages, seconds = 50, 300
		var all sync.WaitGroup
		for i := range pages {
			all.Go(func() {
				for range seconds {
					s.show()
					time.Sleep(time.Second - time.Duration(i)*time.Millisecond)
				}
			})
		}
		all.Wait()
		time.Sleep(3 * time.Second)
		if trips, diagnoses := e.asked(); trips > seconds+1 || trips < seconds-20 || diagnoses > seconds/60+1 {
			t.Errorf("%d pages for %d s: %d round trips, %d diagnoses", pages, seconds, trips, diagnoses)
		}
	})
}

// TestAway checks that the reply reports an unavailable store, with the last diagnosis and its age.
// The server diagnoses the store again when it is back.
func TestAway(t *testing.T) {
	for name, c := range map[string]struct {
		fail   func(context.Context) error
		reason string
	}{
		"refused":    {always(fmt.Errorf("%w: connection refused", driver.ErrUnavailable)), "store unavailable: connection refused"},
		"no answer":  {always(errors.New("reset")), "store unavailable: reset"},
		"closed":     {always(driver.ErrClosed), driver.ErrClosed.Error()},
		"hung":       {hang, "store unavailable: no answer within the request timeout"},
		"deaf":       {func(context.Context) error { time.Sleep(time.Hour); return nil }, "no answer within the request timeout"},
		"broken off": {fault, "a fault of the server: its log has more"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newStore()
				s := open(t, e, server.Options{})
				e.set(c.fail, nil)
				reason := strings.ReplaceAll(c.reason, "store unavailable", driver.ErrUnavailable.Error())
				s.want("away: " + reason + "; the store does not answer")
				if _, n := e.asked(); n != 0 {
					t.Error("it was diagnosed")
				}
				e.set(nil, nil)
				if name == "deaf" {
					time.Sleep(time.Hour) // the server sends one request at a time, and this one takes an hour
				}
				time.Sleep(time.Second)
				s.want("5 ms; warn 0 s ago")
				e.set(c.fail, nil)
				time.Sleep(61 * time.Second)
				if got, want := says(s.show()), "away: "+reason+"; warn 6"; !strings.HasPrefix(got, want) { // 61 s and the wait
					t.Errorf("says %q, want %q", got, want)
				}
				if name == "deaf" {
					time.Sleep(time.Hour)
				}
				e.set(nil, nil)
				time.Sleep(time.Second)
				s.show() // starts a diagnosis, and does not wait for it
				time.Sleep(time.Second)
				s.want("5 ms; warn 1 s ago")
				synctest.Wait() // the log is written
				if logged := s.log.String(); strings.Contains(logged, "marker") || strings.Contains(logged, "level=ERROR") != (name == "broken off") {
					t.Errorf("logged %s", logged)
				}
			})
		})
	}
}

// TestRefusalIsAnAnswer checks that a store that refuses the request counts as available.
func TestRefusalIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newStore()
		s := open(t, e, server.Options{})
		for _, err := range []error{driver.ErrPermission, driver.ErrKindMismatch} {
			e.set(always(err), nil)
			time.Sleep(time.Second)
			if v := s.show(); !v.Answers || v.Reason != "" {
				t.Errorf("%v: says %q", err, says(v))
			}
		}
	})
}

// TestDiagnoses checks that only the first request waits for a diagnosis, for 2 s at most. A failed
// diagnosis is reported together with the previous one.
func TestDiagnoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newStore()
		s := open(t, e, server.Options{})
		slow := func(context.Context) error {
			time.Sleep(10 * time.Second)
			return nil
		}
		e.set(nil, slow)
		began := time.Now()
		s.want("5 ms; it is under way")
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("took %s", took)
		}
		time.Sleep(9 * time.Second)
		s.want("5 ms; warn 1 s ago")
		time.Sleep(time.Minute)
		began = time.Now()
		s.want("5 ms; warn 61 s ago")
		if took := time.Since(began); took != 5*time.Millisecond {
			t.Errorf("took %s", took)
		}
		for fail, want := range map[string]func(context.Context) error{
			"no right to look": always(fmt.Errorf("%w: admin is missing", driver.ErrPermission)),
			"a fault":          fault,
			"hung":             hang,
		} {
			e.set(nil, want)
			time.Sleep(time.Minute)
			s.show()
			time.Sleep(31 * time.Second)
			if v := s.show(); v.Diagnosis == nil || *v.CheckedAgoMS < 80_000 || v.Undiagnosed == "" {
				t.Errorf("%s: says %q", fail, says(v))
			}
		}
		if _, n := e.asked(); n != 5 {
			t.Errorf("%d diagnoses", n)
		}
		e.set(nil, nil)
		time.Sleep(time.Minute)
		s.show()
		time.Sleep(time.Second)
		s.want("5 ms; warn 1 s ago")
	})
}

// TestDrainAndClose checks that a draining server still serves the state of the store, but starts
// no diagnosis. Close ends a running diagnosis.
func TestDrainAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newStore()
		s := open(t, e, server.Options{})
		s.server.Drain()
		s.want("5 ms; the server is about to stop")
		if _, n := e.asked(); n != 0 {
			t.Errorf("%d diagnoses", n)
		}
		e = newStore()
		s = open(t, e, server.Options{})
		e.set(nil, hang)
		s.show()
		began := time.Now()
		if err := s.server.Close(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("closed after %s: %v", time.Since(began), err)
		}
		time.Sleep(time.Minute)
		if v := s.show(); v.Answers && v.Diagnosis != nil {
			t.Errorf("after Close: %+v", v)
		}
		synctest.Wait()
	})
	synctest.Test(t, func(t *testing.T) {
		e := newStore()
		s := open(t, e, server.Options{})
		e.set(nil, func(context.Context) error { time.Sleep(time.Minute); return nil })
		s.show()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.server.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("closed beside an engine that does not return: %v", err)
		}
		time.Sleep(time.Minute)
	})
}
