package holdfasttest_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/holdfasttest"
	"github.com/holdfast-locks/holdfast/internal/faketest"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// inBoth runs a test in virtual time and in real time.
func inBoth(t *testing.T, test func(t *testing.T)) {
	t.Run("virtual", func(t *testing.T) { synctest.Test(t, test) })
	t.Run("real", test)
}

func acquire(t testing.TB, c *holdfast.Client, name string, opts *holdfast.AcquireOptions) *holdfast.Lease {
	t.Helper()
	l, err := c.TryAcquire(t.Context(), name, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Release(context.Background()) })
	return l
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestLose(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		l := acquire(t, k.Client, "a", nil)
		next := make(chan *holdfast.Lease, 1)
		go func() {
			l, err := k.NewClient(nil).Acquire(t.Context(), "a", nil)
			if err != nil {
				t.Error(err)
			}
			next <- l
		}()
		k.AwaitWaiters("a", 1)
		lost := time.Now()
		k.Lose("a")
		if l.Valid() {
			t.Error("the lease is valid after Lose")
		}
		wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
		after := <-next // before the holder that lost it releases it
		if took := time.Since(lost); took > 5*time.Second {
			t.Errorf("the next had it after %s", took)
		}
		wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		if after.Token() <= l.Token() {
			t.Errorf("token %d after %d", after.Token(), l.Token())
		}
		if err := after.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLoseAll checks that Lose ends all shared leases of a lock, and that of HoldElsewhere.
func TestLoseAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		shared := &holdfast.AcquireOptions{Mode: holdfast.Shared}
		one, two := acquire(t, k.Client, "a", shared), acquire(t, k.NewClient(nil), "a", shared)
		k.Lose("a")
		if one.Valid() || two.Valid() {
			t.Error("a share is valid after Lose")
		}
		release := k.HoldElsewhere("a", time.Hour)
		k.Lose("a")
		release() // does nothing
		acquire(t, k.Client, "a", nil)
	})
}

func TestHoldElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		k.HoldElsewhere("a", time.Minute)
		if k.Held("a") {
			t.Error("Held, by somebody else")
		}
		_, err := k.Client.TryAcquire(t.Context(), "a", nil)
		var held *holdfast.HeldError
		if !errors.As(err, &held) || held.Holder.String() != "somebody else on elsewhere" {
			t.Errorf("error %v, want one that names the holder", err)
		}
		k.BreakStore(errors.New("down")) // for the kit's clients only
		k.HoldElsewhere("b", time.Minute)
		k.BreakStore(nil)

		began := time.Now()
		l, err := k.Client.Acquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release(t.Context())
		if waited := time.Since(began); waited < time.Minute || waited > time.Minute+time.Second {
			t.Errorf("it waited for %s, want a minute", waited)
		}
		if !k.Held("a") {
			t.Error("not Held, by the kit's client")
		}
	})
}

// TestHeld checks that Held is true from the grant until the release begins.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		if k.Held("a") {
			t.Error("Held, by nobody")
		}
		l := acquire(t, k.Client, "a", nil)
		if !k.Held("a") {
			t.Error("not Held")
		}
		k.SlowStore(time.Second)
		done := make(chan error, 1)
		go func() { done <- l.Release(t.Context()) }()
		synctest.Wait()
		if k.Held("a") {
			t.Error("Held, while it is being released")
		}
		wantErr(t, <-done, nil)
	})
}

// TestHoldElsewhereInRealTime checks that the lock is free after its time in real time, too.
func TestHoldElsewhereInRealTime(t *testing.T) {
	t.Parallel()
	k := holdfasttest.New(t)
	k.HoldElsewhere("a", 50*time.Millisecond)
	if err := rightWorkerOn(t, k, "a"); err != nil {
		t.Error(err)
	}
}

func rightWorkerOn(t testing.TB, k *holdfasttest.Kit, name string) error {
	return k.Client.Do(t.Context(), name, nil, func(context.Context, *holdfast.Lease) error { return nil })
}

func TestBreakStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		refused := errors.New("connection refused")
		k.BreakStore(refused)
		_, err := k.Client.TryAcquire(t.Context(), "a", nil)
		wantErr(t, err, holdfast.ErrUnavailable)
		wantErr(t, err, refused)
		for _, err := range k.Client.List(t.Context(), "") {
			wantErr(t, err, refused)
		}
		_, err = k.Client.Inspect(t.Context(), "a")
		wantErr(t, err, refused)

		k.BreakStore(holdfast.ErrPermission)
		_, err = k.Client.Acquire(t.Context(), "a", nil)
		wantErr(t, err, holdfast.ErrPermission)
		if errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("error %v, want nothing but what the store says", err)
		}
		k.BreakStore(nil)
		lock, err := k.Client.Inspect(t.Context(), "a")
		if err != nil || len(lock.Holders)+lock.QueueLength > 0 {
			t.Errorf("a broken store has carried out a request: %+v, %v", lock, err)
		}
		acquire(t, k.Client, "a", nil)
	})
}

// TestBreakStoreUnderLease checks that the lease of a holder that is cut off ends at its deadline.
func TestBreakStoreUnderLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		l := acquire(t, k.Client, "a", &holdfast.AcquireOptions{TTL: 10 * time.Second})
		cut := time.Now()
		k.BreakStore(errors.New("connection reset"))
		<-l.Context().Done()
		if took := time.Since(cut); took > 10*time.Second || took < 5*time.Second {
			t.Errorf("the lease lasted for %s, want hardly 10 s", took)
		}
		wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
	})
}

func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		k.SlowStore(time.Second)
		began := time.Now()
		l := acquire(t, k.Client, "a", nil)
		if took := time.Since(began); took != time.Second {
			t.Errorf("acquire took %s, want 1s", took)
		}
		if left := time.Until(l.Deadline()); left > 29*time.Second {
			t.Errorf("the lease lasts for %s, want 30 s from before the request", left)
		}
		k.SlowStore(time.Hour) // no answer
		began = time.Now()
		_, err := k.Client.TryAcquire(t.Context(), "b", nil)
		wantErr(t, err, holdfast.ErrUnavailable)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("TryAcquire took %s, want the request timeout", took)
		}
		k.SlowStore(0)
		if lock, err := k.Client.Inspect(t.Context(), "b"); err != nil || lock.LastToken != 0 { // the lease may have been released by now
			t.Errorf("a request that was given up has reached the store: %+v, %v", lock, err)
		}
	})
}

// TestSlowAndBroken checks that a request under way when the store breaks does not arrive.
func TestSlowAndBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		k.SlowStore(time.Second)
		time.AfterFunc(500*time.Millisecond, func() { k.BreakStore(errors.New("down")) })
		_, err := k.Client.TryAcquire(t.Context(), "a", nil)
		wantErr(t, err, holdfast.ErrUnavailable)
	})
}

func TestDropReplies(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		k.DropReplies(1)
		l, err := k.Client.Acquire(t.Context(), "a", nil) // repeats the request
		if err != nil {
			t.Fatal(err)
		}
		first := l.Token()
		k.DropReplies(1)
		wantErr(t, l.Release(t.Context()), holdfast.ErrOutcomeUnknown)
		again := acquire(t, k.Client, "a", nil) // the release was carried out
		if again.Token() <= first {
			t.Errorf("token %d after %d", again.Token(), first)
		}
		k.DropReplies(5)
		k.DropReplies(0)
		acquire(t, k.Client, "b", nil)
	})
}

// TestDroppedIsCarriedOut checks that DropReplies carries out and drops exactly n requests, and
// counts none while the store is broken.
func TestDroppedIsCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		engine, down := k.Engine(), errors.New("down")
		req := driver.AcquireRequest{Name: "a", LeaseID: lockinfo.NewLeaseID(), TTL: time.Minute}
		k.DropReplies(1)
		k.BreakStore(down)
		_, err := engine.Acquire(t.Context(), req)
		wantErr(t, err, down)
		k.BreakStore(nil)
		if _, err := engine.Acquire(t.Context(), req); err == nil || driver.Definite(err) {
			t.Errorf("error %v, want one that leaves it open what was done", err)
		}
		lock, err := engine.Inspect(t.Context(), "a")
		if err != nil || len(lock.Holders) != 1 {
			t.Errorf("%+v, %v: the request was not carried out, or one answer too many is lost", lock, err)
		}
		wantErr(t, engine.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: req.LeaseID}), nil)
	})
}

// TestDroppedGrant checks that the library cancels a lease whose grant was lost.
func TestDroppedGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		k.DropReplies(1 << 30)
		_, err := k.Client.TryAcquire(t.Context(), "a", nil)
		wantErr(t, err, holdfast.ErrUnavailable)
		k.DropReplies(0)
		time.Sleep(2 * time.Second) // virtual: the library cancels the lease
		acquire(t, k.Client, "a", nil)
	})
}

// TestWrongCalls checks that the kit describes mistakes in a test.
func TestWrongCalls(t *testing.T) {
	for _, c := range []struct {
		says string
		call func(t testing.TB, k *holdfasttest.Kit)
	}{
		{`lose "a": nobody has it`, func(_ testing.TB, k *holdfasttest.Kit) { k.Lose("a") }},
		{`hold "a" elsewhere: held by`, func(t testing.TB, k *holdfasttest.Kit) {
			acquire(t, k.Client, "a", nil)
			k.HoldElsewhere("a", time.Minute)
		}},
		{"hold \"a\" elsewhere for 0s: want 10ms to 720h0m0s", func(_ testing.TB, k *holdfasttest.Kit) { k.HoldElsewhere("a", 0) }},
		{`hold "" elsewhere: invalid`, func(_ testing.TB, k *holdfasttest.Kit) { k.HoldElsewhere("", time.Minute) }},
		{`nobody has acquired "a" within 20s`, func(_ testing.TB, k *holdfasttest.Kit) {
			k.HoldElsewhere("a", time.Hour)
			k.AwaitHeld("a")
		}},
		{`0 wait for "a" after 20s, want 1`, func(_ testing.TB, k *holdfasttest.Kit) { k.AwaitWaiters("a", 1) }},
		{"holdfast: new client: invalid", func(_ testing.TB, k *holdfasttest.Kit) { k.NewClient(&holdfast.Options{TTL: 1}) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			texts := faketest.Run(t, func(t testing.TB) { c.call(t, holdfasttest.New(t)) })
			if len(texts) != 1 || !strings.Contains(texts[0], c.says) {
				t.Errorf("%q, want one that says %q", texts, c.says)
			}
		})
	}
}

// TestKitOfAnotherTime checks that a kit from outside of the bubble fails instead of hanging.
func TestKitOfAnotherTime(t *testing.T) {
	k := holdfasttest.New(t)
	synctest.Test(t, func(t *testing.T) {
		_, err := k.Client.Acquire(t.Context(), "a", nil)
		wantErr(t, err, holdfast.ErrInvalid)
		if err == nil || !strings.Contains(err.Error(), "call holdfasttest.New with the T of the bubble") {
			t.Errorf("error %v, want one that says what to do", err)
		}
	})
}

// TestObserver checks that the Observer of the options receives events.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		var kinds []holdfast.EventKind
		opts := &holdfast.Options{Observer: func(e holdfast.Event) { kinds = append(kinds, e.Kind) }}
		if err := acquire(t, k.NewClient(opts), "a", nil).Release(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait() // until the Observer has received all events
		if len(kinds) != 2 || kinds[0] != holdfast.Acquired || kinds[1] != holdfast.Released {
			t.Errorf("events %v", kinds)
		}
	})
}

// TestNoGoroutineStays checks that the kit and its clients leave no goroutine after the test.
func TestNoGoroutineStays(t *testing.T) {
	before := runtime.NumGoroutine()
	faketest.Run(t, func(t testing.TB) {
		k := holdfasttest.New(t)
		l := acquire(t, k.Client, "a", nil)
		go func() { _ = rightWorkerOn(t, k, "a") }()
		k.AwaitWaiters("a", 1)
		k.BreakStore(errors.New("down"))
		_ = l.Release(t.Context())
	})
	for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// A lateAnswer is an engine that delivers grants a millisecond late.
type lateAnswer struct{ driver.Forward }

func (e lateAnswer) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	reply, err := e.Forward.Acquire(ctx, req)
	time.Sleep(time.Millisecond)
	return reply, err
}

// TestLoseBeforeTheAnswer checks that a loss at the moment of the grant reaches the client.
func TestLoseBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		client, err := holdfast.New(lateAnswer{driver.Forward{Engine: k.Engine()}}, &holdfast.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		done := make(chan error, 1)
		go func() { done <- longWorker(t.Context(), client, ignore) }()
		k.AwaitHeld("import")
		k.Lose("import")
		k.AwaitStop("import", 100*time.Millisecond)
		if err := <-done; !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("error %v, want ErrLost", err)
		}
	})
}
