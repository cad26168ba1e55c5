package limit_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
)

// TestKept checks the bound on what the store keeps for a caller. An item no longer counts once it
// expires, is deleted, or has lost its payload. The result of completed work may use twice the
// bound.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Max{Kept: 10_000})
		keep := func(key string, n int, ttl time.Duration) error { return l.Keep(one, key, n, ttl, false) }
		token := limit.Token(driver.Digest("d"))
		for _, err := range []error{keep("a", 4000, time.Hour), keep("a", 4000, 2*time.Hour), keep(token, 4000, 24*time.Hour), l.Room(one)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		wantExceeded(t, keep("b", 1000, time.Hour), "too-much-kept")
		if err := errors.Join(l.Keep(other, "b", 9000, time.Hour, false), l.Room(other)); err != nil {
			t.Errorf("another caller: %v", err)
		}
		if err := l.Keep(one, "done", 9000, time.Hour, true); err != nil {
			t.Errorf("what is done: %v", err)
		}
		wantExceeded(t, l.Room(one), "too-much-kept")
		wantExceeded(t, l.Keep(one, "done too", 9000, time.Hour, true), "too-much-kept")
		time.Sleep(time.Hour)
		if err := l.Room(one); err != nil {
			t.Errorf("after one has ended: %v", err)
		}
		wantExceeded(t, keep("b", 1000, time.Hour), "too-much-kept")
		l.Emptied(token)
		if err := keep("b", 4000, time.Hour); err != nil {
			t.Errorf("after one was redeemed: %v", err)
		}
		wantExceeded(t, keep("c", 1000, time.Hour), "too-much-kept")
		l.Dropped("a")
		if err := keep("c", 3000, time.Hour); err != nil {
			t.Errorf("after one was forgotten: %v", err)
		}
		wantExceeded(t, keep("e", 3000, time.Hour), "too-much-kept")
		time.Sleep(time.Hour)
		if err := keep("e", 8000, time.Hour); err != nil {
			t.Errorf("after all but one that is empty have ended: %v", err)
		}
	})
}

// TestKeepersAreForgotten checks that a caller whose results have expired takes no memory.
func TestKeepersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Max{})
		for n := range 1000 {
			c := &caller.Caller{Name: fmt.Sprint(n)}
			if err := l.Keep(c, fmt.Sprint(n), 1, time.Second, false); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := limit.Callers(l); n > 100 {
			t.Errorf("%d callers are remembered, want few more than those of the last second", n)
		}
	})
}

// TestBodies checks the bounds on the bodies of one caller and of all callers. A body that is
// longer than a bound is accepted alone.
func TestBodies(t *testing.T) {
	l := limit.New(limit.Max{})
	if err := errors.Join(l.Body(one, 3*limit.CallerBytes), l.Body(other, limit.CallerBytes)); err != nil {
		t.Fatal(err)
	}
	wantExceeded(t, l.Body(one, 1), "too-many-bytes")
	wantExceeded(t, l.Body(other, 1), "too-many-bytes")
	third := &caller.Caller{Name: "third"}
	wantExceeded(t, l.Body(third, limit.ServerBytes), "busy")
	l.BodyDone(one, 3*limit.CallerBytes)
	l.BodyDone(other, limit.CallerBytes)
	if err := l.Body(third, limit.ServerBytes); err != nil {
		t.Error(err)
	}
	l.BodyDone(third, limit.ServerBytes)
	if n := limit.Callers(l); n != 0 {
		t.Errorf("%d callers are remembered, want none", n)
	}
}
