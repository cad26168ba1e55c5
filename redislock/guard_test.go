package redislock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/redisfence"
)

// A claim has an arbitrary token and lease ID.
type claim struct {
	token uint64
	id    lockinfo.LeaseID
}

func (c claim) Token() uint64        { return c.token }
func (c claim) ID() lockinfo.LeaseID { return c.id }

func newClaim(token uint64) claim { return claim{token, lockinfo.NewLeaseID()} }

// guarded starts a server and returns a guard on it and a plain client.
func guarded(t testing.TB, args ...string) (*redisfence.Guard, rueidis.Client) {
	t.Helper()
	server := testsvc.Redis(t, args...)
	return guardOn(t, open(t, server.URL), nil), plain(t, server)
}

// markOf returns the stored mark of a resource.
func markOf(t testing.TB, admin rueidis.Client, resource string) string {
	t.Helper()
	return text(t, admin, "GET", keyspace{}.mark(resource))
}

// wantStale fails the test unless err refuses c because of current.
func wantStale(t testing.TB, err error, c claim, resource string, current uint64) {
	t.Helper()
	var stale *fence.StaleError
	if !errors.Is(err, fence.ErrStale) || !errors.As(err, &stale) {
		t.Fatalf("token %d after %d: %v, want ErrStale", c.token, current, err)
	}
	if stale.Token != c.token || stale.Current != current || stale.Resource != resource {
		t.Errorf("refused with %+v, want resource %q, token %d and current %d", *stale, resource, c.token, current)
	}
}

// guardVerbs are all ways to change a resource.
var guardVerbs = map[string]func(context.Context, *redisfence.Guard, claim) error{
	"advance": func(ctx context.Context, g *redisfence.Guard, c claim) error { return g.Advance(ctx, "r", c) },
	"set":     func(ctx context.Context, g *redisfence.Guard, c claim) error { return g.Set(ctx, "r", c, "new", 0) },
	"set with a TTL": func(ctx context.Context, g *redisfence.Guard, c claim) error {
		return g.Set(ctx, "r", c, "new", time.Minute)
	},
	"delete": func(ctx context.Context, g *redisfence.Guard, c claim) error { return g.Delete(ctx, "r", c) },
	"run": func(ctx context.Context, g *redisfence.Guard, c claim) error {
		_, err := g.Run(ctx, redisfence.NewScript(`return redis.call('APPEND', KEYS[1], 'new')`), "r", c, nil, nil)
		return err
	},
}

// TestGuardRule checks that a greater token passes, that an equal one passes for the same lease,
// and that all others are refused and change nothing.
func TestGuardRule(t *testing.T) {
	g, admin := guarded(t)
	for verb, do1 := range guardVerbs {
		for _, mark := range []uint64{5, 999, 1 << 32, 1763690000123457, driver.MaxToken - 1} {
			do(t, admin, "FLUSHALL")
			first := newClaim(mark)
			if err := g.Set(t.Context(), "r", first, "old", 0); err != nil {
				t.Fatal(err)
			}
			for _, c := range []claim{newClaim(mark), newClaim(mark - 1), newClaim(1), {mark - 1, first.id}} {
				wantStale(t, do1(t.Context(), g, c), c, "r", mark)
				if value, m := text(t, admin, "GET r"), markOf(t, admin, "r"); value != "old" || m != fmt.Sprintf("%d %s", mark, first.id) {
					t.Fatalf("%s, refused: value %q, mark %q", verb, value, m)
				}
			}
			for _, c := range []claim{first, first, newClaim(mark + 1), {mark + 1, first.id}} {
				err := do1(t.Context(), g, c)
				if c.token == mark+1 && c.id == first.id { // the previous claim has this token
					wantStale(t, err, c, "r", mark+1)
				} else if err != nil {
					t.Fatalf("%s, token %d after %d: %v", verb, c.token, mark, err)
				}
			}
		}
	}
}

// TestGuardTokensAreExact checks tokens up to the greatest.
func TestGuardTokensAreExact(t *testing.T) {
	g, admin := guarded(t)
	for token := driver.MaxToken - 40; token <= driver.MaxToken; token++ {
		c := newClaim(token)
		if err := g.Advance(t.Context(), "r", c); err != nil {
			t.Fatalf("token %d: %v", token, err)
		}
		if got, want := markOf(t, admin, "r"), fmt.Sprintf("%d %s", token, c.id); got != want {
			t.Fatalf("mark %q, want %q", got, want)
		}
		late := newClaim(token - 1)
		wantStale(t, g.Advance(t.Context(), "r", late), late, "r", token)
	}
}

// TestGuardRefusesBadInput checks that bad input is refused before a request is sent.
func TestGuardRefusesBadInput(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	g, ctx, good := guardOn(t, e, nil), t.Context(), newClaim(7)
	script := redisfence.NewScript("return 1")
	for what, try := range map[string]func() error{
		"token 0":            func() error { return g.Advance(ctx, "r", newClaim(0)) },
		"token 2^53-1":       func() error { return g.Advance(ctx, "r", newClaim(driver.MaxToken+1)) },
		"token 2^64-1":       func() error { return g.Set(ctx, "r", newClaim(1<<64-1), "v", 0) },
		"no claim":           func() error { return g.Advance(ctx, "r", nil) },
		"lease ID of 1 byte": func() error { return g.Delete(ctx, "r", claim{7, "a"}) },
		"empty resource":     func() error { return g.Advance(ctx, "", good) },
		"reserved resource":  func() error { return g.Advance(ctx, keyspace{}.mark("x"), good) },
		"negative TTL":       func() error { return g.Set(ctx, "r", good, "v", -1) },
		"reserved key": func() error {
			_, err := g.Run(ctx, script, "r", good, []string{keyspace{}.mark("r")}, nil)
			return err
		},
		"prefix": func() error { _, err := redisfence.New(e, &redisfence.Options{Prefix: "a}b"}); return err },
		"engine": func() error { _, err := redisfence.New(mem.New(nil), nil); return err },
	} {
		wantIs(t, what, try(), driver.ErrInvalid)
	}
	if n := number(t, admin, "DBSIZE"); n != 0 {
		t.Errorf("%d keys were written", n)
	}
	_ = e.Close()
	wantIs(t, "after Close", g.Advance(ctx, "r", good), driver.ErrClosed)
}

// TestGuardKeepsMark checks that the mark lasts as long as the resource, and then for TokenMemory.
func TestGuardKeepsMark(t *testing.T) {
	g, admin := guarded(t)
	c, token := claim{}, uint64(100)
	next := func() claim { token++; c = newClaim(token); return c }
	for _, step := range []struct {
		what string
		do   func() error
		want time.Duration // the rest of the mark's life; -1 if it has no end
	}{
		{"advance without a resource", func() error { return g.Advance(t.Context(), "r", next()) }, driver.TokenMemory},
		{"set", func() error { return g.Set(t.Context(), "r", next(), "v", 0) }, -1},
		{"advance", func() error { return g.Advance(t.Context(), "r", next()) }, -1},
		{"set with a TTL", func() error { return g.Set(t.Context(), "r", next(), "v", time.Hour) }, driver.TokenMemory + time.Hour},
		{"advance with a TTL", func() error { return g.Advance(t.Context(), "r", next()) }, driver.TokenMemory + time.Hour},
		{"set again, same holder", func() error { return g.Set(t.Context(), "r", c, "v", 0) }, -1},
		{"a script that gives a TTL", func() error {
			_, err := g.Run(t.Context(), redisfence.NewScript(`return redis.call('PEXPIRE', KEYS[1], ARGV[1])`), "r", c, nil, []string{"1800000"})
			return err
		}, driver.TokenMemory + 30*time.Minute},
		{"a script that fails and takes it away", func() error {
			_, err := g.Run(t.Context(), redisfence.NewScript(`redis.call('PERSIST', KEYS[1]); error('no')`), "r", next(), nil, nil)
			var failed *redisfence.ScriptError
			if !errors.As(err, &failed) {
				return fmt.Errorf("want a ScriptError, not %w", err)
			}
			return nil
		}, -1},
		{"delete", func() error { return g.Delete(t.Context(), "r", c) }, driver.TokenMemory},
		{"delete again", func() error { return g.Delete(t.Context(), "r", c) }, driver.TokenMemory},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if got, want := markOf(t, admin, "r"), fmt.Sprintf("%d %s", c.token, c.id); got != want {
			t.Errorf("%s: mark %q, want %q", step.what, got, want)
		}
		left := time.Duration(number(t, admin, "PTTL", keyspace{}.mark("r"))) * time.Millisecond
		if step.want < 0 {
			if left != -1*time.Millisecond {
				t.Errorf("%s: the mark ends in %s, want never", step.what, left)
			}
		} else if left > step.want || left < step.want-drivertest.Patience {
			t.Errorf("%s: the mark ends in %s, want %s", step.what, left, step.want)
		}
	}
	late := newClaim(token - 1)
	wantStale(t, g.Set(t.Context(), "r", late, "zombie", 0), late, "r", token)
	if n := number(t, admin, "EXISTS r"); n != 0 {
		t.Error("a stale holder brought the deleted resource back")
	}
}

// TestGuardSetTTL checks that a TTL works as in SET, rounded up.
func TestGuardSetTTL(t *testing.T) {
	g, admin := guarded(t)
	if err := g.Set(t.Context(), "r", newClaim(1), "v", 300*time.Millisecond+1); err != nil {
		t.Fatal(err)
	}
	if left := number(t, admin, "PTTL r"); left < 1 || left > 301 {
		t.Errorf("a TTL of %d ms, want 301", left)
	}
	drivertest.Eventually(t, "the resource expires", func() bool { return number(t, admin, "EXISTS r") == 0 })
	late := newClaim(0 + 1)
	wantStale(t, g.Set(t.Context(), "r", late, "zombie", 0), late, "r", 1)
	if err := g.Set(t.Context(), "short", newClaim(1), "v", time.Nanosecond); err != nil {
		t.Errorf("a TTL of a nanosecond: %v", err)
	}
}

// TestGuardMarkSurvivesRestart restarts a server that keeps its data.
func TestGuardMarkSurvivesRestart(t *testing.T) {
	server := testsvc.Redis(t, "--dir", t.TempDir(), "--appendonly", "yes", "--appendfsync", "always")
	g := guardOn(t, open(t, server.URL), nil)
	if err := g.Set(t.Context(), "r", newClaim(driver.MaxToken), "v", 0); err != nil {
		t.Fatal(err)
	}
	server.Restart()
	late := newClaim(driver.MaxToken - 1)
	var err error
	drivertest.Eventually(t, "an answer after the restart", func() bool {
		err = g.Set(t.Context(), "r", late, "zombie", 0)
		return errors.Is(err, fence.ErrStale)
	})
	wantStale(t, err, late, "r", driver.MaxToken)
	if got := text(t, plain(t, server), "GET r"); got != "v" {
		t.Errorf("after the restart the resource is %q", got)
	}
}

// TestGuardOfLease checks that a lease is a claim, and that a resource with the lock's own name is
// refused instead of overwriting the lock.
func TestGuardOfLease(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	req := drivertest.Request("orders/42", time.Minute)
	c := claim{drivertest.Granted(t, e, req), req.LeaseID}
	lock := text(t, admin, "GET orders/42")
	for verb, call := range map[string]error{
		"set":     guardOn(t, e, nil).Set(t.Context(), "orders/42", c, "v", 0),
		"delete":  guardOn(t, e, nil).Delete(t.Context(), "orders/42", c),
		"advance": guardOn(t, e, nil).Advance(t.Context(), "orders/42", c),
	} {
		wantIs(t, verb+" of the lock itself", call, driver.ErrInvalid)
	}
	if got := text(t, admin, "GET orders/42"); got != lock {
		t.Errorf("the lock became %q", got)
	}
	if err := guardOn(t, e, &redisfence.Options{Prefix: "data:"}).Set(t.Context(), "orders/42", c, "v", 0); err != nil {
		t.Error(err)
	}
	if got := text(t, admin, "GET data:orders/42"); got != "v" {
		t.Errorf("data:orders/42 is %q", got)
	}
}

// TestGuardForeignMark checks that a value that is not a mark stays unchanged, and that no claim
// passes it.
func TestGuardForeignMark(t *testing.T) {
	g, admin := guarded(t)
	id := string(lockinfo.NewLeaseID())
	for _, mark := range []string{
		"", " ", "x", "7", " 7 ", id, "07 " + id, "-7 " + id, "7.0 " + id, "1e3 " + id, "0 " + id, "7 " + id + "0", "7 " + id[1:], "7  ",
		"9007199254740991 " + id, "18446744073709551616 " + id, "7 " + id + "\n",
	} {
		do(t, admin, "SET", keyspace{}.mark("r"), mark)
		wantIs(t, fmt.Sprintf("mark %q", mark), g.Set(t.Context(), "r", newClaim(driver.MaxToken), "v", 0), driver.ErrKindMismatch)
		if got := markOf(t, admin, "r"); got != mark {
			t.Errorf("mark %q became %q", mark, got)
		}
	}
	do(t, admin, "DEL", keyspace{}.mark("r"))
	do(t, admin, "HSET", keyspace{}.mark("r"), "a", "b")
	wantIs(t, "mark that is a hash", g.Set(t.Context(), "r", newClaim(7), "v", 0), driver.ErrKindMismatch)
	if n := number(t, admin, "EXISTS r"); n != 0 {
		t.Error("the resource was written")
	}
}

// TestGuardRights checks that the documented rights suffice. Without one of them a call is refused
// before the resource changes, or works and keeps the mark.
func TestGuardRights(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	documented := []string{"evalsha", "eval", "type", "getrange", "get", "set", "pttl", "pexpire", "persist", "del"}
	user := func(t *testing.T, without string) *redisfence.Guard {
		t.Helper()
		rights := "ACL SETUSER app reset on >secret ~app:*"
		for _, command := range documented {
			if command != without {
				rights += " +" + command
			}
		}
		do(t, admin, rights)
		return guardOn(t, open(t, "redis://app:secret@"+server.Addr), &redisfence.Options{Prefix: "app:"})
	}
	mark := keyspace{"app:"}.mark("r")
	for _, without := range append([]string{"none"}, documented...) {
		t.Run("without "+without, func(t *testing.T) {
			g, c := user(t, without), newClaim(5)
			for _, next := range []struct {
				value string // the new value of the resource; "" deletes it
				claim claim
			}{{"new", newClaim(6)}, {"again", c}, {"", c}} {
				do(t, admin, "FLUSHALL")
				do(t, admin, "SET app:r old")
				do(t, admin, "SET", mark, fmt.Sprintf("5 %s", c.id), "PX", "60000")
				var err error
				if next.value == "" {
					err = g.Delete(t.Context(), "r", next.claim)
				} else {
					err = g.Set(t.Context(), "r", next.claim, next.value, 0)
				}
				want := next.value
				if err != nil {
					wantIs(t, "refusal", err, driver.ErrPermission)
					want = "old"
				}
				if got := text(t, admin, "GET app:r"); got != want {
					t.Errorf("%v: the resource is %q, want %q", err, got, want)
				}
				if left := number(t, admin, "PTTL", mark); want != "" && left >= 0 && err == nil {
					t.Errorf("the mark ends in %d ms, with a resource that has no end", left)
				}
				if without == "none" && err != nil {
					t.Errorf("with the documented rights: %v", err)
				}
			}
		})
	}
}
