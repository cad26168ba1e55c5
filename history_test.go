package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func remembering() *mem.Engine { return mem.New(&mem.Options{History: true}) }

// happened returns what events tell of.
func happened(events []holdfast.HistoryEvent) (kinds []holdfast.HistoryKind) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// wantHistory fails t unless that is what happened to a name.
func wantHistory(t *testing.T, c *holdfast.Client, name string, want ...holdfast.HistoryKind) []holdfast.HistoryEvent {
	t.Helper()
	events, err := c.History(t.Context(), name)
	if err != nil || !slices.Equal(happened(events), want) {
		t.Fatalf("history of %q: %v, %v; want %v", name, happened(events), err, want)
	}
	return events
}

// TestHistoryTellsWhatClientsDo: a wait, a hand-over and a release, as people see them.
func TestHistoryTellsWhatClientsDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, remembering(), nil)
		l := mustAcquire(t, c, "a", nil)
		time.AfterFunc(3*time.Second, func() { _ = l.Release(context.Background()) })
		next, err := c.Acquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		events := wantHistory(t, c, "a", holdfast.HistoryAcquired, holdfast.HistoryQueued, holdfast.HistoryReleased, holdfast.HistoryHandedOver)
		if e := events[2]; e.Token != l.Token() || e.Held != 3*time.Second {
			t.Errorf("released after %s, token %d", e.Held, e.Token)
		}
		if e := events[3]; e.Token != next.Token() || e.Waited != 3*time.Second || e.Holder.PID == 0 {
			t.Errorf("handed over to %s after %s, token %d", e.Holder, e.Waited, e.Token)
		}
		wantHistory(t, c, "unknown")
	})
}

// TestLostLeaseIsGivenBackAsLost: what the client counts as lost and then gives back is
// told as lost, and what it gives back in time is not, even if the store only hears it
// later.
func TestLostLeaseIsGivenBackAsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &cutOff{Forward: driver.Forward{Engine: remembering()}}
		c := newClient(t, engine, &holdfast.Options{RequestTimeout: time.Second})
		lost := mustAcquire(t, c, "lost", &holdfast.AcquireOptions{MaxHold: time.Second})
		<-lost.Context().Done()
		if err := lost.Release(t.Context()); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("Release = %v, want ErrLost", err)
		}
		synctest.Wait()
		wantHistory(t, c, "lost", holdfast.HistoryAcquired, holdfast.HistoryLost)

		late := mustAcquire(t, c, "late", nil)
		engine.off.Store(true)
		if err := late.Release(t.Context()); err == nil {
			t.Error("Release of a store that does not answer: no error")
		}
		engine.off.Store(false)
		time.Sleep(10 * time.Second)
		wantHistory(t, c, "late", holdfast.HistoryAcquired, holdfast.HistoryReleased)
	})
}

// A cutOff engine does not carry releases out while it is off.
type cutOff struct {
	driver.Forward
	off atomic.Bool
}

func (e *cutOff) Release(ctx context.Context, req driver.ReleaseRequest) error {
	if e.off.Load() {
		return errors.New("cut off")
	}
	return e.Forward.Release(ctx, req)
}

// TestHistoryUnsupported: without history nobody is told that nothing happened.
func TestHistoryUnsupported(t *testing.T) {
	c := newClient(t, mem.New(nil), nil)
	const says = `holdfast: history of "a": history is not supported by this engine: open the engine with it`
	if _, err := c.History(t.Context(), "a"); !errors.Is(err, holdfast.ErrUnsupported) || err.Error() != says {
		t.Errorf("History = %v, want %s", err, says)
	}
	n := 0
	for e, err := range c.Feed(t.Context(), "") {
		if n++; !errors.Is(err, holdfast.ErrUnsupported) {
			t.Errorf("Feed yields %+v, %v; want ErrUnsupported", e, err)
		}
	}
	if n != 1 {
		t.Errorf("Feed yields %d times, want once", n)
	}
}

// TestHistoryOfStoreThatHangs: it ends with the request timeout.
func TestHistoryOfStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, hangs{driver.Forward{Engine: remembering()}}, &holdfast.Options{RequestTimeout: time.Second})
		start := time.Now()
		_, err := c.History(t.Context(), "a")
		if took := time.Since(start); !errors.Is(err, holdfast.ErrUnavailable) || took != time.Second {
			t.Errorf("History = %v after %s, want ErrUnavailable after 1s", err, took)
		}
	})
}

type hangs struct{ driver.Forward }

func (hangs) History(ctx context.Context, _ string) ([]lockinfo.HistoryEvent, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestFeed: a feed begins with a gap, tells what happens to the names that are asked
// for, and ends with the context.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, remembering(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			for _, name := range []string{"a/1", "b", "a/2"} {
				_ = mustAcquire(t, c, name, nil).Release(ctx)
			}
			synctest.Wait()
			cancel()
		}()
		var told []string
		var ended error
		for e, err := range c.Feed(ctx, "a/") {
			if ended = err; err == nil {
				told = append(told, fmt.Sprint(e.Kind, " ", e.Name))
			}
		}
		if want := []string{"gap ", "acquired a/1", "released a/1", "acquired a/2", "released a/2"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if !errors.Is(ended, context.Canceled) {
			t.Errorf("the feed ended with %v, want context.Canceled", ended)
		}
	})
}

// TestFeedIsBounded: a loop that is slow misses events, is told so, and hears of the
// latest. Nobody waits for it. One that is left hears nothing more.
func TestFeedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, remembering(), nil)
		const many = 3000 // pairs
		gaps, n := 0, 0
		var last holdfast.HistoryEvent
		for e, err := range c.Feed(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == holdfast.HistoryGap {
				gaps++
			}
			if n++; n == 1 {
				for range many {
					_ = mustAcquire(t, c, "a", nil).Release(t.Context())
				}
				l := mustAcquire(t, c, "last", nil)
				defer l.Release(t.Context())
				synctest.Wait()
			}
			if last = e; e.Name == "last" {
				break
			}
		}
		if gaps < 2 || n > 4097 || last.Name != "last" {
			t.Errorf("%d events, %d gaps, the last of %q", n, gaps, last.Name)
		}
	})
}

// TestFeedEndsWithClose: whoever closes the client does not wait for those who listen.
func TestFeedEndsWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, remembering(), nil)
		go func() {
			synctest.Wait()
			_ = c.Close()
		}()
		var ended error
		for _, err := range c.Feed(t.Context(), "") {
			ended = err
		}
		if !errors.Is(ended, holdfast.ErrClosed) {
			t.Errorf("the feed ended with %v, want ErrClosed", ended)
		}
	})
}
