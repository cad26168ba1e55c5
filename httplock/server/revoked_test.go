package server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// An answer is a reply that continues until the server ends it.
type answer struct {
	header http.Header
	done   chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }
func (a *answer) WriteHeader(int)     {}
func (a *answer) Flush()              {}

func (a *answer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.Write(p)
}

func (a *answer) last() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(a.text.String()), "\n")
	return lines[len(lines)-1]
}

// follow sends a request for a stream.
func follow(t *testing.T, h http.Handler, r *http.Request) *answer {
	a := &answer{header: http.Header{}, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(r.Context())
	go func() {
		defer close(a.done)
		h.ServeHTTP(a, r.WithContext(ctx))
	}()
	t.Cleanup(func() { cancel(); <-a.done })
	return a
}

// endsAfter waits up to limit for the end of the reply, and returns how long it took.
func (a *answer) endsAfter(limit time.Duration) (time.Duration, bool) {
	began := time.Now()
	select {
	case <-a.done:
		return time.Since(began), true
	case <-time.After(limit):
		return 0, false
	}
}

// callersFile writes a file of callers with their names and rights. The token of each is "token-"
// and its name.
func callersFile(t *testing.T, path string, rights map[string]string) {
	t.Helper()
	var entries []string
	for name, r := range rights {
		entries = append(entries, fmt.Sprintf(`{"name":%q,"sha256":"%x","prefixes":[""],"rights":[%s]}`, name, sha256.Sum256([]byte("token-"+name)), r))
	}
	if err := os.WriteFile(path, []byte(`{"callers":[`+strings.Join(entries, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A watched is a server whose callers are in a file.
type watched struct {
	engine *mem.Engine
	server *server.Server
	log    *bytes.Buffer
	path   string
}

// inWatched runs a test in virtual time, on a server that knows ann and ben.
func inWatched(t *testing.T, test func(t *testing.T, s *watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &watched{engine: mem.New(&mem.Options{History: true}), log: &bytes.Buffer{}, path: filepath.Join(t.TempDir(), "callers.json")}
		callersFile(t, s.path, map[string]string{"ann": `"acquire","read"`, "ben": `"acquire","read"`})
		log := slog.New(slog.NewTextHandler(s.log, nil))
		file, err := caller.Open(s.path, &caller.FileOptions{Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		if s.server, err = server.New(s.engine, &server.Options{Callers: file, Logger: log, Secret: bytes.Repeat([]byte("s"), 32)}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(s.server.Close(context.Background()), s.engine.Close()); err != nil {
				t.Error(err)
			}
		})
		test(t, s)
	})
}

// streams opens a stream of each kind as name.
func (s *watched) streams(t *testing.T, name string) map[string]*answer {
	t.Helper()
	all, n := map[string]*answer{}, 0
	begin := func(kind, method, target, body string) {
		n++
		r := (&site{}).request(t.Context(), "token-"+name, method, target, body)
		r.Header.Set("Idempotency-Key", fmt.Sprintf("key-of-%s-%010d", name, n))
		r.Header.Set("Holdfast-Client", fmt.Sprintf("%032x", len(name)+int(name[0])+n))
		all[kind] = follow(t, s.server, r)
		synctest.Wait()
	}
	begin("held", "POST", "/v1/leases?hold=1", `{"name":"`+name+`","ttl_ms":90000}`)
	begin("renewed by the client", "POST", "/v1/leases?hold=1&renew=client", `{"name":"`+name+`/2","ttl_ms":3600000}`)
	begin("queued", "POST", "/v1/leases?hold=1", `{"name":"`+name+`","ttl_ms":90000,"wait_ms":3600000}`)
	begin("events", "GET", "/v1/events", "")
	begin("driver news", "POST", "/v1/driver/news", `{}`)
	begin("driver events", "POST", "/v1/driver/events", `{}`)
	return all
}

// TestRevokedCallerHasNoStreams checks that a caller has no stream a minute after its entry was
// removed from the file, or got other rights. Other callers keep their streams. The caller's locks
// are neither released nor renewed.
func TestRevokedCallerHasNoStreams(t *testing.T) {
	for what, rights := range map[string]map[string]string{
		"taken out":    {"ben": `"acquire","read"`},
		"other rights": {"ben": `"acquire","read"`, "ann": `"read"`},
	} {
		t.Run(what, func(t *testing.T) {
			inWatched(t, func(t *testing.T, s *watched) {
				ann, ben := s.streams(t, "ann"), s.streams(t, "ben")
				time.Sleep(10*time.Minute + 7*time.Second)
				for kind, a := range ann {
					select {
					case <-a.done:
						t.Fatalf("%s has ended by itself: %s", kind, a.last())
					default:
					}
				}
				callersFile(t, s.path, rights)
				revoked := time.Now()
				for kind, a := range ann {
					if _, ended := a.endsAfter(time.Minute - time.Since(revoked)); !ended {
						t.Errorf("%s goes on after a minute", kind)
					}
				}
				for _, kind := range []string{"held", "renewed by the client", "queued"} {
					if last := ann[kind].last(); !strings.Contains(last, `"event":"moved"`) {
						t.Errorf("%s ended with %s", kind, last)
					}
				}
				if held, free := s.holders(t, "ann"), time.Since(revoked); len(held) != 1 {
					t.Errorf("%s after the caller was revoked, the lock has %d holders, want the lease to run out", free, len(held))
				}
				time.Sleep(90 * time.Second)
				if held := s.holders(t, "ann"); len(held) != 0 {
					t.Errorf("the lease goes on: %+v", held)
				}
				for kind, a := range ben {
					select {
					case <-a.done:
						t.Errorf("%s of another caller has ended: %s", kind, a.last())
					default:
					}
				}
				if n := strings.Count(s.log.String(), "what=revoked caller=ann"); n != len(ann) {
					t.Errorf("%d streams are logged as revoked, want %d", n, len(ann))
				}
			})
		})
	}
}

func (s *watched) holders(t *testing.T, name string) []lockinfo.Holding {
	t.Helper()
	lock, err := s.engine.Inspect(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return lock.Holders
}

// TestSessionEndsItsStreams checks that the stream of a signed-in browser ends with its session, or
// when its token is removed.
func TestSessionEndsItsStreams(t *testing.T) {
	for what, c := range map[string]struct {
		before time.Duration // how long the stream continues
		end    func(t *testing.T, s *watched)
	}{
		"the session is over": {12*time.Hour - time.Minute, func(t *testing.T, _ *watched) { time.Sleep(time.Minute) }},
		"the token is taken out": {time.Hour, func(t *testing.T, s *watched) {
			callersFile(t, s.path, map[string]string{"ben": `"acquire","read"`})
		}},
	} {
		t.Run(what, func(t *testing.T) {
			inWatched(t, func(t *testing.T, s *watched) {
				b := &browser{T: t, handler: s.server}
				b.signIn("token-ann")
				r := (&site{}).request(t.Context(), "", "GET", "/v1/events", "")
				r.Header.Set("Sec-Fetch-Site", "same-origin")
				r.AddCookie(b.cookie)
				a := follow(t, s.server, r)
				if after, ended := a.endsAfter(c.before); ended {
					t.Fatalf("it ended after %s", after)
				}
				c.end(t, s)
				if _, ended := a.endsAfter(time.Minute); !ended {
					t.Error("it goes on a minute later")
				}
			})
		})
	}
}

// TestUnknownForAWhile checks that a stream continues while its caller cannot be identified, and
// that the server checks the caller again afterwards.
func TestUnknownForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		known, failure := &caller.Caller{Name: "ann", Rights: caller.All}, error(nil)
		s, _ := open(t, server.Options{Callers: sourceFunc(func(*http.Request) (*caller.Caller, error) {
			mu.Lock()
			defer mu.Unlock()
			if failure != nil {
				return nil, failure
			}
			return known, nil
		})})
		a := follow(t, s, (&site{}).request(t.Context(), "x", "POST", "/v1/driver/news", `{}`))
		synctest.Wait()
		for _, c := range []struct {
			err  error
			ends bool
		}{{fmt.Errorf("the issuer: %w", caller.ErrUnavailable), false}, {nil, false}, {caller.Wrong("the token has expired"), true}} {
			mu.Lock()
			failure = c.err
			mu.Unlock()
			if _, ended := a.endsAfter(time.Minute); ended != c.ends {
				t.Errorf("with %v: ended is %t", c.err, ended)
			}
		}
	})
}
