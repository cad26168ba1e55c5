package lookdoor_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// A site is a server, and a client that follows its locks by requests for the changes.
type site struct {
	*testing.T
	engine *counting
	server *server.Server
	who    caller.Caller

	revision string
	zipped   bool // requests accept gzip; then replies are not recorded
	sent     int  // bytes of the last reply
}

// A counting engine counts lists, and delays them until gate is closed.
type counting struct {
	*mem.Engine
	lists atomic.Int64
	takes atomic.Int64  // nanoseconds that each list takes
	stall atomic.Int64  // more nanoseconds for the next list
	most  atomic.Int64  // if not 0, how many invented names the next list has
	gate  chan struct{} // nil: no list waits
	fails error
}

func (c *counting) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	c.lists.Add(1)
	if c.gate != nil {
		<-c.gate
	}
	if c.fails != nil {
		return func(yield func(lockinfo.LockState, error) bool) { yield(lockinfo.LockState{}, c.fails) }
	}
	time.Sleep(time.Duration(c.takes.Load() + c.stall.Swap(0)))
	if n := c.most.Swap(0); n > 0 {
		return func(yield func(lockinfo.LockState, error) bool) {
			for i := int64(0); i < n && yield(lockinfo.LockState{Name: fmt.Sprint("many/", i), QueueLength: 1}, nil); i++ {
			}
		}
	}
	return c.Engine.List(ctx, prefix)
}

func (s *site) Identify(*http.Request) (*caller.Caller, error) {
	who := s.who
	return &who, nil
}

func open(t *testing.T) *site {
	t.Helper()
	return openWith(t, nil)
}

func openWith(t *testing.T, o *mem.Options) *site {
	t.Helper()
	s := &site{T: t, engine: &counting{Engine: mem.New(o)}, who: caller.Caller{Name: "ann", Rights: caller.Read}}
	var err error
	s.server, err = server.New(s.engine, &server.Options{Callers: s, Secret: bytes.Repeat([]byte("x"), 32), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.server.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// take acquires a lock, and returns the ID of its lease.
func (s *site) take(name string, ttl time.Duration) lockinfo.LeaseID {
	s.Helper()
	id := lockinfo.NewLeaseID()
	reply, err := s.engine.Acquire(s.Context(), driver.AcquireRequest{Name: name, LeaseID: id, TTL: ttl})
	if err != nil || reply.Outcome != driver.Granted {
		s.Fatal(reply, err)
	}
	return id
}

func (s *site) release(name string, id lockinfo.LeaseID) {
	s.Helper()
	if err := s.engine.Release(s.Context(), driver.ReleaseRequest{Name: name, LeaseID: id}); err != nil {
		s.Error(err)
	}
}

func (s *site) renew(name string, id lockinfo.LeaseID, ttl time.Duration) {
	s.Helper()
	if err := s.engine.Extend(s.Context(), []driver.ExtendRequest{{Name: name, LeaseID: id, TTL: ttl}})[0]; err != nil {
		s.Error(err)
	}
}

// ask requests a list of locks with a query.
func (s *site) ask(query string) *httptest.ResponseRecorder {
	s.Helper()
	r := httptest.NewRequestWithContext(s.Context(), "GET", "/v1/locks?"+query, nil)
	r.Header.Set("Accept", "application/x-ndjson")
	w := httptest.NewRecorder()
	if s.zipped {
		r.Header.Set("Accept-Encoding", "gzip")
		s.server.ServeHTTP(w, r)
	} else {
		exchange.Recorded(s.T, s.server).ServeHTTP(w, r)
	}
	return w
}

// want requests the changes after the last reply, and checks the reply. whole is whether it must be
// a list of all locks. names are the names in it, with a - before the names of free locks.
func (s *site) want(whole bool, names ...string) {
	s.Helper()
	w := s.ask("since=" + s.revision)
	if w.Code != http.StatusOK {
		s.Fatalf("%d %s", w.Code, w.Body)
	}
	s.sent = w.Body.Len()
	var got []string
	body := io.Reader(w.Body)
	if s.zipped {
		unzipped, err := gzip.NewReader(w.Body)
		if err != nil {
			s.Fatal(err)
		}
		body = unzipped
	}
	for d := json.NewDecoder(body); ; {
		var lock wire.Lock
		if err := d.Decode(&lock); err == io.EOF {
			break
		} else if err != nil {
			s.Fatal(err)
		}
		if !lock.Held {
			lock.Name = "-" + lock.Name
		}
		for _, h := range lock.Holders {
			if h.Foreign || h.HeldMS == nil {
				s.Errorf("%s: its holder is foreign: %+v", lock.Name, h)
			}
		}
		got = append(got, lock.Name)
	}
	slices.Sort(got)
	slices.Sort(names)
	since := w.Header().Get("Holdfast-Since")
	if !slices.Equal(got, names) || (since == "") != whole || !whole && since != s.revision {
		s.Errorf("since %q: %q, since %q, want %q, all of them: %t", s.revision, got, since, names, whole)
	}
	if s.revision = w.Header().Get("Holdfast-Revision"); s.revision == "" {
		s.Error("there is no revision")
	}
}

// TestChanges checks that a client gets the locks that changed since its revision, freed ones too.
// A lease changes when its renewal is late, and when it is renewed late or with another TTL.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		a, b := s.take("a", 30*time.Second), s.take("b", time.Minute)
		s.take("holdfast@server/x", time.Minute)
		s.want(true, "a", "b")
		s.want(false)
		time.Sleep(10 * time.Second)
		s.renew("a", a, 30*time.Second)
		s.want(false)
		c := s.take("c", time.Minute)
		s.release("b", b)
		s.want(false, "c", "-b")
		s.want(false)
		time.Sleep(21 * time.Second) // of the 30 s TTL of a
		s.want(false, "a")
		s.renew("a", a, 30*time.Second)
		s.want(false, "a")
		s.renew("a", a, time.Minute) // another TTL
		s.want(false, "a")
		before := s.revision
		s.release("c", c)
		s.take("b", time.Minute)
		s.want(false, "-c", "b")
		s.revision = before
		s.want(false, "-c", "b") // again, for a client that lost the reply
		for _, unknown := range []string{"x", "x-1", strings.TrimRight(before, "0123456789") + "99", before + "0", strings.Repeat("x", 1000)} {
			s.revision = unknown
			s.want(true, "a", "b")
		}
	})
}

// TestChangesAreSmall checks that a page gets few bytes while 10,000 locks are only renewed.
func TestChangesAreSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.zipped = true
		ids := make([]lockinfo.LeaseID, 10_000)
		var names []string
		for i := range ids {
			names = append(names, fmt.Sprintf("orders/%05d", i))
			ids[i] = s.take(names[i], 30*time.Second)
		}
		s.want(true, names...)
		first, minute := s.sent, 0
		for range 6 {
			time.Sleep(10 * time.Second)
			for i, id := range ids {
				s.renew(names[i], id, 30*time.Second)
			}
			s.want(false)
			minute += s.sent
		}
		if minute > 1000 {
			t.Errorf("%d bytes in a minute", minute)
		}
		t.Logf("%d bytes at first, then %d bytes a minute, without headers", first, minute)
	})
}

// TestChangesAreShared checks that concurrent requests share a list that begins after all of them.
func TestChangesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.take("a", time.Hour)
		s.want(true, "a")
		s.engine.lists.Store(0)
		s.engine.gate = make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() { s.ask("since=") })
		synctest.Wait() // its list is under way
		for range 20 {
			all.Go(func() {
				if w := s.ask("since=" + s.revision); w.Code != http.StatusOK {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		synctest.Wait()
		close(s.engine.gate)
		all.Wait()
		if n := s.engine.lists.Load(); n != 2 {
			t.Errorf("%d lists, want 2", n)
		}
	})
}

// follow makes pages follow the locks for a while, each at the times that the server sets. It
// returns how many lists there were.
func (s *site) follow(pages int, length time.Duration) int {
	s.Helper()
	began, before := time.Now(), s.engine.lists.Load()
	var all sync.WaitGroup
	for i := range pages {
		all.Go(func() {
			time.Sleep(time.Duration(i) * 7 * time.Second) // the pages do not begin together
			for revision := ""; time.Since(began) < length; {
				time.Sleep(time.Duration(i) * time.Millisecond) // and are not equally fast
				r := httptest.NewRequestWithContext(s.Context(), "GET", "/v1/locks?since="+revision, nil)
				r.Header.Set("Accept", "application/x-ndjson")
				w := httptest.NewRecorder()
				s.server.ServeHTTP(w, r) // not recorded: there are too many
				revision = w.Header().Get("Holdfast-Revision")
				next, err := strconv.Atoi(w.Header().Get("Holdfast-Next-Ms"))
				if err != nil || next <= 0 {
					s.Errorf("the next list is in %d ms: %v", next, err)
					return
				}
				time.Sleep(time.Duration(next) * time.Millisecond)
			}
		})
	}
	all.Wait()
	return int(s.engine.lists.Load() - before)
}

// TestListsTakeATwentieth checks that lists take at most a twentieth of the time, however long a
// list takes and however many pages are open. The first lists of each page do not count. Short
// lists still come every 2 s, or every 10 s with history, even after one list has taken 30 s.
func TestListsTakeATwentieth(t *testing.T) {
	const pages, length = 8, time.Hour
	for _, history := range []bool{false, true} {
		for _, takes := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond, 2500 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				s := openWith(t, &mem.Options{History: history})
				s.take("a", 5*time.Hour)
				s.engine.takes.Store(int64(takes))
				least := 2 * time.Second
				if history {
					least = 10 * time.Second
				}
				wanted := int(length/max(least, 40*takes)) - 2
				lists := s.follow(pages, length)
				if used := time.Duration(lists-2*pages) * takes; used > length/20 || lists < wanted {
					t.Errorf("history %t, a list takes %s: %d lists in an hour, which took %s; want %d at least", history, takes, lists, used, wanted)
				}
				s.engine.stall.Store(int64(30 * time.Second))
				if again := s.follow(1, length/6); again < wanted/8 {
					t.Errorf("history %t, a list takes %s: %d lists in ten minutes, of which the first stood still, want %d at least", history, takes, again, wanted/8)
				}
			})
		}
	}
}
