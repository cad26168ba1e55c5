package redislock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/rediscore/redisfence"
)

// TestScriptSeesItsOwnKeysAndArguments checks the keys, arguments and reply of a script.
func TestScriptSeesItsOwnKeysAndArguments(t *testing.T) {
	g, admin := guarded(t)
	for body, want := range map[string]any{
		``:                                      nil,
		`return 7`:                              int64(7),
		`return 'text' -- a comment at the end`: "text",
		`return false`:                          nil,
		`return redis.status_reply('FINE')`:     "FINE",
		`return { 1, 'a', { 2, false } }`:       []any{int64(1), "a", []any{int64(2), nil}},
		`return KEYS`:                           []any{"r", "a", "b"},
		`return ARGV`:                           []any{"x", "", "7"},
		`if ARGV[1] == 'x' then return #ARGV + #KEYS end`: int64(6),
		`return { mark = 1, token = 2 }`:                  []any{},
	} {
		got, err := g.Run(t.Context(), redisfence.NewScript(body), "r", newClaim(1e15), []string{"a", "b"}, []string{"x", "", "7"})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v; want %#v", body, got, err, want)
		}
		do(t, admin, "FLUSHALL")
	}
	for _, hidden := range []string{"token", "known", "last", "holder", "keys", "args", "left", "failed"} {
		if got, err := g.Run(t.Context(), redisfence.NewScript("return "+hidden), "r", newClaim(1e15), nil, nil); err == nil {
			t.Errorf("the body sees %s of the guard: %v", hidden, got)
		}
		do(t, admin, "FLUSHALL")
	}
}

// TestScriptOfStaleHolderIsNotRun uses resources of any type.
func TestScriptOfStaleHolderIsNotRun(t *testing.T) {
	g, admin := guarded(t)
	sell := redisfence.NewScript(`return redis.call('HINCRBY', KEYS[1], 'sold', ARGV[1]) + redis.call('INCR', KEYS[2])`)
	holder, late := newClaim(34), newClaim(33)
	for range 2 {
		if _, err := g.Run(t.Context(), sell, "flight", holder, []string{"total"}, []string{"1"}); err != nil {
			t.Fatal(err)
		}
		_, err := g.Run(t.Context(), sell, "flight", late, []string{"total"}, []string{"1"})
		wantStale(t, err, late, "flight", 34)
	}
	if sold, total := text(t, admin, "HGET flight sold"), text(t, admin, "GET total"); sold != "2" || total != "2" {
		t.Errorf("sold %s, total %s; want 2", sold, total)
	}
}

// TestScriptErrors checks that a script's own error is reported as such, and is not a definite
// error, because the script may have written.
func TestScriptErrors(t *testing.T) {
	g, admin := guarded(t)
	for body, want := range map[string]string{
		`redis.call('SET', KEYS[1], 'half'); return redis.error_reply('SOLD out')`: "SOLD out",
		`redis.call('SET', KEYS[1], 'half'); error('no seats')`:                    "no seats",
		`redis.call('SET', KEYS[1], 'half'); redis.call('LPUSH', KEYS[1], 'x')`:    "WRONGTYPE",
		"redis.call('SET', KEYS[1], 'half')\n\nlocal x = nil + 1":                  ":3:",
		`redis.call('SET', KEYS[1], 'half'); error()`:                              "without a text",
	} {
		c := newClaim(5)
		_, err := g.Run(t.Context(), redisfence.NewScript(body), "r", c, nil, nil)
		var failed *redisfence.ScriptError
		if !errors.As(err, &failed) || !strings.Contains(failed.Text, want) || errors.Is(err, driver.ErrKindMismatch) {
			t.Errorf("%s: %v, want a ScriptError with %q", body, err, want)
		}
		if got := text(t, admin, "GET r"); got != "half" {
			t.Errorf("%s: the resource is %q, want what the script wrote", body, got)
		}
		if got := markOf(t, admin, "r"); got != fmt.Sprintf("5 %s", c.id) {
			t.Errorf("%s: mark %q", body, got)
		}
		do(t, admin, "FLUSHALL")
	}
	if _, err := g.Run(t.Context(), redisfence.NewScript("this is not Lua"), "r", newClaim(5), nil, nil); err == nil {
		t.Error("a script that does not compile: no error")
	}
	if n := number(t, admin, "DBSIZE"); n != 0 {
		t.Errorf("a script that does not compile left %d keys", n)
	}
}

// TestGuardErrorsOfTheServer checks that errors are definite if nothing was written.
func TestGuardErrorsOfTheServer(t *testing.T) {
	server := testsvc.Redis(t)
	g, admin := guardOn(t, open(t, server.URL), nil), plain(t, server)
	do(t, admin, "CONFIG SET maxmemory 1")
	wantIs(t, "full, new token", g.Set(t.Context(), "r", newClaim(5), "v", 0), driver.ErrUnavailable)
	if n := number(t, admin, "DBSIZE"); n != 0 {
		t.Errorf("a full server has %d keys", n)
	}
	do(t, admin, "CONFIG SET maxmemory 0")
	c := newClaim(5)
	if err := g.Set(t.Context(), "r", c, "v", 0); err != nil {
		t.Fatal(err)
	}
	do(t, admin, "CONFIG SET maxmemory 1")
	wantIs(t, "full, same token", g.Set(t.Context(), "r", c, "w", 0), driver.ErrUnavailable)
	if err := g.Delete(t.Context(), "r", c); err != nil {
		t.Errorf("delete on a full server: %v", err)
	}
	do(t, admin, "CONFIG SET maxmemory 0")
	server.Kill()
	drivertest.Eventually(t, "the client sees that the server is gone", func() bool {
		return errors.Is(g.Set(t.Context(), "r", c, "v", 0), driver.ErrUnavailable)
	})
}

// TestGuardIsOneRequest checks that each method sends one request.
func TestGuardIsOneRequest(t *testing.T) {
	g, admin := guarded(t)
	c := newClaim(5)
	script := redisfence.NewScript(`return redis.call('INCR', KEYS[1])`)
	all := func() {
		for _, err := range []error{
			g.Advance(t.Context(), "r", c), g.Set(t.Context(), "r", c, "1", 0), g.Delete(t.Context(), "r", c),
			func() error { _, err := g.Run(t.Context(), script, "r", c, nil, nil); return err }(),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	all() // loads the scripts into the server
	do(t, admin, "CONFIG RESETSTAT")
	const rounds = 10
	for range rounds {
		all()
	}
	var requests int
	for line := range strings.Lines(text(t, admin, "INFO commandstats")) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
			n, _, _ := strings.Cut(rest, ",")
			requests, _ = strconv.Atoi(n)
		}
		if strings.HasPrefix(line, "cmdstat_eval:") {
			t.Errorf("a script was sent in full: %s", line)
		}
	}
	if requests != 4*rounds {
		t.Errorf("%d requests for %d calls", requests, 4*rounds)
	}
}

// TestGuardUnderContention checks that the tokens that a resource accepts never decrease, and that
// only one of two holders with equal tokens passes.
func TestGuardUnderContention(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	record := redisfence.NewScript(`return redis.call('RPUSH', KEYS[1], ARGV[1])`)
	const workers, each, tokens = 64, 50, 400
	var mu sync.Mutex
	accepted, refused := 0, 0
	g := guardOn(t, open(t, server.URL), &redisfence.Options{Observer: func(e observe.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e.Kind {
		case observe.ClaimAccepted:
			accepted++
		case observe.ClaimRefused:
			refused++
		}
		if e.Name != "r" || e.Token == 0 || e.Current < e.Token {
			t.Errorf("event %+v", e)
		}
	}})
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			id := lockinfo.NewLeaseID()
			for i := range each {
				// Later tokens are greater, so that some of each worker's pass.
				c := claim{1763690000000000 + uint64(i*tokens/each) + random.Uint64N(tokens/4), id}
				_, err := g.Run(t.Context(), record, "r", c, nil, []string{fmt.Sprintf("%d %s", c.token, id)})
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	told := func() int {
		mu.Lock()
		defer mu.Unlock()
		return accepted + refused
	}
	for end := time.Now().Add(10 * time.Second); told() < workers*each && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	list, err := do(t, admin, "LRANGE r 0 -1").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	checkAccepted(t, list)
	t.Logf("%d claims: %d accepted, %d refused", workers*each, accepted, refused)
	if accepted != len(list) || accepted+refused != workers*each || refused == 0 {
		t.Errorf("%d accepted and %d refused of %d by the events, %d in the list", accepted, refused, workers*each, len(list))
	}
}

// checkAccepted checks accepted claims, "token leaseID", in order.
func checkAccepted(t *testing.T, list []string) {
	t.Helper()
	last, holder := uint64(0), ""
	for _, entry := range list {
		text, id, _ := strings.Cut(entry, " ")
		token, err := strconv.ParseUint(text, 10, 64)
		if err != nil || token < last {
			t.Fatalf("token %s was accepted after %d", text, last)
		}
		if token == last && id != holder {
			t.Fatalf("token %d was accepted of both %s and %s", token, holder, id)
		}
		last, holder = token, id
	}
}

// TestGuardInCluster checks that the resource, its mark and a script's keys are in one slot, and
// that other keys are refused before a request is sent.
func TestGuardInCluster(t *testing.T) {
	g := guardOn(t, engineOn(t, clusterClient(t, cluster(t)), nil), nil)
	script := redisfence.NewScript(`return redis.call('MSET', KEYS[1], 'a', KEYS[2], 'b')`)
	for i, resource := range []string{"r", "{r}1", "r}", "a{b}", "{}x", "}{"} {
		if err := g.Set(t.Context(), resource, newClaim(uint64(i)+1), "v", 0); err != nil {
			t.Errorf("%q: %v", resource, err)
		}
	}
	if _, err := g.Run(t.Context(), script, "{r}1", newClaim(9), []string{"{r}2"}, nil); err != nil {
		t.Error(err)
	}
	_, err := g.Run(t.Context(), script, "{r}1", newClaim(10), []string{"elsewhere"}, nil)
	wantIs(t, "a key in another slot", err, driver.ErrInvalid)
}
