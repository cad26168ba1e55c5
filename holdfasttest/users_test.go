package holdfasttest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/holdfasttest"
)

// The tests in this file are tests that users write for their workers.

// ignore discards rows.
func ignore(string) error { return nil }

// stopsWhenLost checks that a worker that loses the lock stops.
func stopsWhenLost(t testing.TB, work worker) {
	k := holdfasttest.New(t)
	done := make(chan error, 1)
	go func() { done <- work(t.Context(), k.Client, ignore) }()

	k.AwaitHeld("import")
	k.Lose("import")
	k.AwaitStop("import", 500*time.Millisecond)
	if err := <-done; !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("error %v, want ErrLost", err)
	}
}

// stopsWhenCutOff checks that a worker that is cut off stops at its deadline.
func stopsWhenCutOff(t testing.TB, work worker) {
	k := holdfasttest.New(t)
	client := k.NewClient(&holdfast.Options{TTL: 300 * time.Millisecond})
	var last atomic.Int64
	done := make(chan error, 1)
	go func() {
		done <- work(t.Context(), client, func(string) error { last.Store(time.Now().UnixNano()); return nil })
	}()

	k.AwaitHeld("import")
	k.BreakStore(errors.New("connection refused"))
	cut := time.Now()
	if err := <-done; !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("error %v, want ErrLost", err)
	}
	if late := time.Unix(0, last.Load()).Sub(cut) - 300*time.Millisecond; late > 0 {
		t.Errorf("it wrote %s after the lease was over", late)
	}
}

// givesBack checks that work that fails releases the lock.
func givesBack(t testing.TB, work worker) {
	k := holdfasttest.New(t)
	full := errors.New("the disk is full")
	if err := work(t.Context(), k.Client, func(string) error { return full }); !errors.Is(err, full) {
		t.Errorf("error %v, want %v", err, full)
	}
}

// writesUnderLock checks that all rows are written under the lock.
func writesUnderLock(t testing.TB, work worker) {
	k := holdfasttest.New(t)
	err := work(t.Context(), k.Client, func(row string) error {
		if !k.Held("import") {
			t.Errorf("wrote the %s without the lock", row)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// waitsWithEmptyHands checks that a worker does not hold the orders while it waits for the stock.
func waitsWithEmptyHands(t testing.TB, work worker) {
	k := holdfasttest.New(t)
	release := k.HoldElsewhere("stock", time.Minute)
	done := make(chan error, 1)
	go func() { done <- work(t.Context(), k.Client, ignore) }()

	k.AwaitWaiters("stock", 1)
	if k.Held("orders") {
		t.Error("it has the orders while it waits for the stock")
	}
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// stopsWithoutStore checks that no row is written without a store, because there is no lock.
func stopsWithoutStore(t testing.TB, work worker) {
	k := holdfasttest.New(t)
	k.BreakStore(errors.New("connection refused"))
	err := work(t.Context(), k.Client, func(row string) error {
		t.Errorf("wrote a %s without the lock", row)
		return nil
	})
	if !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
	k.BreakStore(nil)
	written := 0
	if err := work(t.Context(), k.Client, func(string) error { written++; return nil }); err != nil || written != 1 {
		t.Errorf("when the store is back: %d rows, error %v", written, err)
	}
}

// keepsToItsTime checks that the work returns in time if the store does not answer.
func keepsToItsTime(t testing.TB, work worker) {
	k := holdfasttest.New(t)
	k.SlowStore(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := work(ctx, k.Client, ignore)
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %s, want 100 ms", took)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// writesOnce checks that a lost reply leads to no second row.
func writesOnce(t testing.TB, work worker) {
	k := holdfasttest.New(t)
	rows := 0
	err := work(t.Context(), k.Client, func(string) error {
		if rows++; rows == 1 {
			k.DropReplies(1) // the reply to the release
		}
		return nil
	})
	if rows != 1 || err != nil {
		t.Errorf("%d rows, error %v; want 1 row", rows, err)
	}
}

// waitsInQueue checks that a worker waits in the queue.
func waitsInQueue(t testing.TB, work worker) {
	k := holdfasttest.New(t)
	release := k.HoldElsewhere("import", time.Hour)
	done := make(chan error, 1)
	go func() { done <- work(t.Context(), k.Client, ignore) }()

	k.AwaitWaiters("import", 1)
	if n := k.Waiters("import"); n != 1 {
		t.Errorf("%d places, want 1", n)
	}
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// excludesOthers checks that two processes do not write at the same time.
func excludesOthers(t testing.TB, work worker) {
	k := holdfasttest.New(t)
	var inside atomic.Int32
	write := func(string) error {
		if inside.Add(1) > 1 {
			t.Error("two write at once")
		}
		time.Sleep(20 * time.Millisecond)
		inside.Add(-1)
		return nil
	}
	var both sync.WaitGroup
	for _, client := range []*holdfast.Client{k.Client, k.NewClient(nil)} {
		both.Go(func() {
			if err := work(t.Context(), client, write); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
}
