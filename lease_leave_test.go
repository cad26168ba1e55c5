package holdfast_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// INVARIANT I9: nothing is sent for a lease that was left: not by the keep-alive, not
// by Release, and not by Close. The store keeps it until its expiry.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		var mu sync.Mutex
		var events []holdfast.EventKind
		c := newClient(t, engine, &holdfast.Options{TTL: 30 * time.Second, Observer: func(e holdfast.Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e.Kind)
		}})
		l := mustAcquire(t, c, "a", nil)
		ctx := l.Context()
		ended := ctx.Done()
		time.Sleep(3 * time.Second)
		calls := fmt.Sprint(engine.calls)
		for range 2 {
			if err := l.Leave(); err != nil {
				t.Error(err)
			}
		}
		<-ended
		wantErr(t, context.Cause(ctx), holdfast.ErrLeft)
		wantErr(t, context.Cause(ctx), holdfast.ErrLost)
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("Release after Leave: %v", err)
		}
		wantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrLeft)
		l.Progress()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(26 * time.Second)
		if l.Valid() || holders(t, engine.Engine, "a") != 1 {
			t.Errorf("valid %t, and %d leases in the store, want one that is not trusted", l.Valid(), holders(t, engine.Engine, "a"))
		}
		time.Sleep(2 * time.Second)
		nothingLeft(t, engine, "a")
		if got := fmt.Sprint(engine.calls); got != calls {
			t.Errorf("requests %s, and %s when it was left", got, calls)
		}
		if got := fmt.Sprint(events); got != "[acquired left]" {
			t.Errorf("the Observer heard %s", got)
		}
	})
}

// What is over cannot be left.
func TestLeaveWhatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		released := mustAcquire(t, c, "a", nil)
		released.Release(t.Context())
		wantErr(t, released.Leave(), holdfast.ErrLost)
		lost := mustAcquire(t, c, "b", &holdfast.AcquireOptions{TTL: time.Second, KeepAlive: holdfast.KeepAliveOff})
		time.Sleep(2 * time.Second)
		wantErr(t, lost.Leave(), holdfast.ErrLost)
		wantErr(t, lost.Release(t.Context()), holdfast.ErrLost)
	})
}

// A renewal that is under way when its lease is left is answered to nobody.
func TestLeaveDuringRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 9 * time.Second})
		engine.set(delay(2*time.Second), nil)
		time.Sleep(4 * time.Second) // a renewal was sent at 3 s
		if engine.count("extend") != 1 {
			t.Fatalf("%d renewals", engine.count("extend"))
		}
		if err := l.Leave(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if engine.count("extend") != 1 || l.Valid() {
			t.Errorf("%d renewals, want none after it was left; valid %t", engine.count("extend"), l.Valid())
		}
	})
}

// Work that leaves its lease to another process has done well.
func TestLeaveInDo(t *testing.T) {
	engine := newFaulty()
	c := newClient(t, engine, nil)
	err := c.Do(t.Context(), "a", nil, func(_ context.Context, l *holdfast.Lease) error { return l.Leave() })
	if err != nil || holders(t, engine, "a") != 1 {
		t.Errorf("Do: %v, %d leases in the store; want the one that was left", err, holders(t, engine, "a"))
	}
}
