package limit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
)

var one, other = &caller.Caller{Name: "one"}, &caller.Caller{Name: "other"}

func TestWaitersAndStreams(t *testing.T) {
	l := limit.New(limit.Max{Waiters: 2, Streams: 1})
	for code, enter := range map[string]func(*caller.Caller) (func(), error){"too-many-waiters": l.Waiter, "too-many-streams": l.Stream} {
		var leaves []func()
		for {
			leave, err := enter(one)
			if err != nil {
				wantExceeded(t, err, code)
				break
			}
			leaves = append(leaves, leave)
		}
		if want := map[string]int{"too-many-waiters": 2, "too-many-streams": 1}[code]; len(leaves) != want {
			t.Errorf("%s after %d, want %d", code, len(leaves), want)
		}
		if _, err := enter(other); err != nil {
			t.Errorf("another caller: %v", err)
		}
		leaves[0]()
		leaves[0]() // a second call has no effect
		if _, err := enter(one); err != nil {
			t.Errorf("after one has left: %v", err)
		}
		_, err := enter(one)
		wantExceeded(t, err, code)
	}
}

func wantExceeded(t *testing.T, err error, code string) {
	t.Helper()
	var e *limit.Exceeded
	if !errors.As(err, &e) || e.Code != code || e.Again < time.Second {
		t.Errorf("%#v, want code %s, and when to ask again", err, code)
	}
}

func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Max{Leases: 2})
		take := func(key string, ttl time.Duration) error { return l.Leases(one, ttl, key) }
		if err := errors.Join(take("a", 10*time.Second), take("b", 20*time.Second)); err != nil {
			t.Fatal(err)
		}
		wantExceeded(t, take("c", time.Second), "too-many-leases")
		if err := take("a", 10*time.Second); err != nil {
			t.Errorf("the same lease again: %v", err)
		}
		if err := l.Leases(other, time.Second, "c"); err != nil {
			t.Errorf("another caller: %v", err)
		}
		l.Ended(one, "b")
		if err := take("c", time.Second); err != nil {
			t.Errorf("after one has ended: %v", err)
		}
		time.Sleep(9 * time.Second)
		l.Renewed(one, "a", 10*time.Second)
		if err := take("d", time.Hour); err != nil { // c has expired
			t.Errorf("after one has run out: %v", err)
		}
		time.Sleep(9 * time.Second)
		wantExceeded(t, take("e", time.Second), "too-many-leases") // a was renewed
		time.Sleep(time.Second)
		if err := take("e", time.Second); err != nil {
			t.Errorf("after the renewed one has run out: %v", err)
		}
	})
}

// TestCallersAreForgotten checks that callers without leases take no memory: an issuer may have
// very many accounts.
func TestCallersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Max{})
		for n := range 1000 {
			c := &caller.Caller{Name: fmt.Sprint(n)}
			if err := l.Leases(c, time.Second, "a"); err != nil {
				t.Fatal(err)
			}
			leave, _ := l.Waiter(c)
			leave()
			time.Sleep(100 * time.Millisecond)
		}
		if n := limit.Callers(l); n > 100 {
			t.Errorf("%d callers are remembered, want few more than those of the last second", n)
		}
	})
}

// TestLists checks that a caller may have few lists at a time. Another list waits for its turn for
// a limited time, and lists of other callers do not wait.
func TestLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Max{})
		list := func(c *caller.Caller) (leave func()) {
			t.Helper()
			leave, err := l.List(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			return leave
		}
		var leaves []func()
		for range limit.ListsAtOnce {
			leaves = append(leaves, list(one))
		}
		_, err := l.List(t.Context(), one)
		wantExceeded(t, err, "too-many-lists")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = l.List(ctx, one); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that hangs up: %v", err)
		}
		leaves = append(leaves, list(other))
		time.AfterFunc(time.Second, leaves[0])
		leaves = append(leaves, list(one))
		for _, leave := range leaves[1:] {
			leave()
		}
		if n := limit.Callers(l); n != 0 {
			t.Errorf("%d callers without a list are remembered", n)
		}
	})
}
