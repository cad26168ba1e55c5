package eventdoor_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// A stage is a store, a server, and a client that causes events.
type stage struct {
	*testing.T
	engine driver.Engine
	server *server.Server
	client *holdfast.Client
	who    caller.Caller
	accept string // Accept-Encoding of new readers
}

func (s *stage) Identify(*http.Request) (*caller.Caller, error) {
	c := s.who
	return &c, nil
}

func open(t *testing.T, engine driver.Engine) *stage {
	t.Helper()
	s := &stage{T: t, engine: engine, who: caller.Caller{Name: "ann", Rights: caller.Read}}
	var err error
	if s.server, err = server.New(engine, &server.Options{Callers: s, Secret: bytes.Repeat([]byte("x"), 32)}); err != nil {
		t.Fatal(err)
	}
	if s.client, err = holdfast.New(engine, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = s.client.Close(), s.server.Close(ctx)
	})
	synctest.Wait()
	return s
}

func withHistory() driver.Engine { return mem.New(&mem.Options{History: true}) }

// use acquires and releases the locks of names: two events each.
func (s *stage) use(names ...string) {
	s.Helper()
	for _, name := range names {
		if err := s.client.Do(s.Context(), name, nil, func(context.Context, *holdfast.Lease) error { return nil }); err != nil {
			s.Fatal(err)
		}
		synctest.Wait() // an engine reports a gap if thousands of events are not read
	}
}

// A screen is a reader of the stream.
type screen struct {
	t      *testing.T
	header http.Header
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	text     strings.Builder
	stuck    bool
	whole    bool // the compressed stream has its end
	writes   int
	deadline time.Time
}

func (s *stage) read(query, last string) *screen {
	ctx, cancel := context.WithCancel(s.Context())
	v := &screen{t: s.T, header: http.Header{}, cancel: cancel, done: make(chan struct{})}
	r := httptest.NewRequestWithContext(ctx, "GET", "/v1/events"+query, nil)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	if s.accept != "" {
		r.Header.Set("Accept-Encoding", s.accept)
	}
	handler := exchange.Recorded(s.T, s.server)
	go func() {
		defer close(v.done)
		handler.ServeHTTP(v, r)
	}()
	s.Cleanup(func() {
		cancel()
		<-v.done
	})
	synctest.Wait()
	return v
}

func (v *screen) Header() http.Header             { return v.header }
func (v *screen) WriteHeader(int)                 {}
func (v *screen) Flush()                          {}
func (v *screen) SetReadDeadline(time.Time) error { return nil }

func (v *screen) SetWriteDeadline(t time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.deadline = t
	return nil
}

func (v *screen) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stuck {
		wait := time.Until(v.deadline)
		v.mu.Unlock()
		time.Sleep(wait)
		v.mu.Lock()
		return 0, os.ErrDeadlineExceeded
	}
	v.writes++
	return v.text.Write(p)
}

func (v *screen) all() string {
	synctest.Wait()
	time.Sleep(50 * time.Millisecond) // all events are written by then
	synctest.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.header.Get("Content-Encoding") != "gzip" {
		return v.text.String()
	}
	zip, err := gzip.NewReader(strings.NewReader(v.text.String()))
	if err != nil {
		v.t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if v.whole = err == nil; err != nil && err != io.ErrUnexpectedEOF {
		v.t.Error(err)
	}
	return string(text)
}

// A shown is an event as a browser understands the stream.
type shown struct {
	id string
	wire.HistoryEvent
}

func (s shown) String() string { return strings.TrimSpace(s.Event + " " + s.Name) }

// events returns the events that the reader got.
func (v *screen) events() (all []shown) {
	v.t.Helper()
	for message := range strings.SplitSeq(v.all(), "\n\n") {
		var e shown
		for line := range strings.SplitSeq(message, "\n") {
			field, value, _ := strings.Cut(line, ": ")
			switch field {
			case "id":
				e.id = value
			case "data":
				if err := json.Unmarshal([]byte(value), &e.HistoryEvent); err != nil {
					v.t.Errorf("%s: %v", value, err)
				}
			case "", ":", "retry":
			default:
				v.t.Errorf("the line %q", line)
			}
		}
		if e.Event != "" {
			all = append(all, e)
		}
	}
	return all
}

// want checks the events that the reader got: kind and name.
func (v *screen) want(want ...string) []shown {
	v.t.Helper()
	got := v.events()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		v.t.Errorf("%v, want %v", got, want)
	}
	return got
}

// TestEvents checks that readers get events as they happen. A reader that returns, to any server,
// gets the events that it has missed, and none twice.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := withHistory()
		a, b := open(t, engine), open(t, engine)
		a.use("before")
		v := a.read("", "")
		if !strings.HasPrefix(v.all(), "retry: 1000\n\n") || v.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%q, %v", v.all(), v.header)
		}
		a.use("x", "y")
		got := v.want("acquired x", "released x", "acquired y", "released y")
		time.Sleep(2 * time.Second)
		again := b.read("", got[1].id).want("acquired y", "released y")
		if *again[0].AgoMS != 2050 || again[0].Holder == nil || again[0].FencingToken == 0 || again[0].id != got[2].id {
			t.Errorf("%+v", again[0])
		}
		v.cancel()
		<-v.done
	})
}

// TestHeartbeat checks that a reader without events gets a comment every 15 s.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := open(t, withHistory()).read("", "")
		time.Sleep(46 * time.Second)
		if n := strings.Count(v.all(), ":\n\n"); n != 3 {
			t.Errorf("%d comments in 46 s: %q", n, v.all())
		}
	})
}

// TestPrefixes checks that a reader gets the events that it requests, and none that it may not see.
func TestPrefixes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, withHistory())
		everything, some := s.read("", ""), s.read("?prefix=app/a", "")
		s.who.Prefixes = []string{"app/", "job/"}
		own, narrow := s.read("", ""), s.read("?prefix=app/b", "")
		s.use("app/a", "app/b", "other", "job/1")
		everything.want("acquired app/a", "released app/a", "acquired app/b", "released app/b", "acquired other", "released other", "acquired job/1", "released job/1")
		some.want("acquired app/a", "released app/a")
		own.want("acquired app/a", "released app/a", "acquired app/b", "released app/b", "acquired job/1", "released job/1")
		narrow.want("acquired app/b", "released app/b")

		s.read("?prefix=jo", "").want()
		for query, code := range map[string]string{"?prefix=zoo": "not-permitted", "?name=x": "invalid", "?prefix=a&prefix=b": "invalid", "?prefix=%zz": "invalid"} {
			if got := s.read(query, "").all(); !strings.Contains(got, `"code":"`+code+`"`) {
				t.Errorf("%s: %s, want %s", query, got, code)
			}
		}
		s.who = caller.Caller{Name: "bob", Rights: caller.Acquire}
		if got := s.read("", "").all(); !strings.Contains(got, "not-permitted") {
			t.Errorf("without the right: %s", got)
		}
	})
}

// TestGaps checks that a reader that returns too late, or with an unknown ID, gets a gap, and then
// the events that the server still has.
func TestGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, withHistory())
		v := s.read("", "")
		s.use("first")
		last := v.events()[1].id
		names := slices.Repeat([]string{"n"}, 4998)
		s.use(names...)
		s.use("end")
		if got := s.read("", last).events(); len(got) != 9_998 || got[0].Event != "acquired" {
			t.Errorf("%d events, the first %v: want those of 4,999 turns, without a gap", len(got), got[0])
		}
		s.use("end")
		got := s.read("", last).events()
		if len(got) != 10_001 || got[0].Event != "gap" || got[0].id != "" || got[1].String() != "acquired n" {
			t.Errorf("%d events, %v: want a gap, and what there is", len(got), got[:2])
		}
		if got := s.read("", "nobody-knows-it").events(); len(got) != 10_001 || got[0].Event != "gap" {
			t.Errorf("%d events, %v: want a gap, and what there is", len(got), got[:2])
		}
	})
}

// A deafening is an engine that can report that it may have missed events.
type deafening struct {
	driver.Forward
	told func(lockinfo.HistoryEvent)
}

func (d *deafening) OnEvent(told func(lockinfo.HistoryEvent)) (stop func()) {
	d.told = told
	return d.Forward.OnEvent(told)
}

// TestGapOfTheEngine checks that every reader gets a gap if the engine may have missed events.
func TestGapOfTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &deafening{Forward: driver.Forward{Engine: withHistory()}}
		s := open(t, engine)
		v := s.read("?prefix=x", "")
		s.use("x", "y")
		synctest.Wait()
		engine.told(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap})
		s.use("x")
		got := v.want("acquired x", "released x", "gap", "acquired x", "released x")
		s.read("?prefix=x", got[1].id).want("gap", "acquired x", "released x")
	})
}

// TestSlowReader checks that a reader that reads nothing is cut off, and does not delay others.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, withHistory())
		slow, v := s.read("", ""), s.read("", "")
		slow.mu.Lock()
		slow.stuck = true
		slow.mu.Unlock()
		began := time.Now()
		s.use("x")
		v.want("acquired x", "released x")
		if <-slow.done; time.Since(began) > 20*time.Second {
			t.Errorf("cut off after %s", time.Since(began))
		}
	})
}

// TestDrain checks that a server that drains ends its streams and refuses new readers.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, withHistory())
		v := s.read("", "")
		s.server.Drain()
		<-v.done
		if got := s.read("", "").all(); !strings.Contains(got, `"code":"draining"`) {
			t.Error(got)
		}
	})
}

// TestNoHistory checks that without history the reply explains how to turn it on.
func TestNoHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got := open(t, mem.New(nil)).read("", "").all(); !strings.Contains(got, `"code":"unsupported"`) || !strings.Contains(got, "history=1") || !strings.Contains(got, `"status":501`) {
			t.Error(got)
		}
	})
}
