package holdfasttest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/holdfasttest"
)

// The code in this file is in the documentation of the package or in docs/testing.md, word for
// word; see TestPagesAreTested.

func importRows(ctx context.Context, client *holdfast.Client, rows []string, write func(row string) error) error {
	return client.Do(ctx, "import", nil, func(ctx context.Context, _ *holdfast.Lease) error {
		for _, row := range rows {
			if err := write(row); err != nil {
				return err
			}
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
}

func TestImportStopsWhenItLosesTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		written := 0
		write := func(string) error { written++; return nil }
		done := make(chan error, 1)
		go func() { done <- importRows(t.Context(), k.Client, []string{"a", "b", "c"}, write) }()

		k.AwaitHeld("import")
		time.Sleep(90 * time.Second) // virtual: the worker has written two rows
		k.Lose("import")
		k.AwaitStop("import", time.Second)
		if err := <-done; written != 2 || !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("%d rows, error %v; want 2, and that the lock was lost", written, err)
		}
	})
}

func TestImportWaitsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		release := k.HoldElsewhere("import", time.Hour)
		done := make(chan error, 1)
		go func() {
			done <- importRows(t.Context(), k.Client, []string{"a"}, func(string) error { return nil })
		}()

		k.AwaitWaiters("import", 1)
		release() // and without this the worker would have its turn in an hour
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestImportStopsWhenItIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		done := make(chan error, 1)
		go func() {
			done <- importRows(t.Context(), k.Client, make([]string, 60), func(string) error { return nil })
		}()

		k.AwaitHeld("import")
		began := time.Now()
		k.BreakStore(errors.New("connection refused"))
		if err := <-done; !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("error %v, want that the lock was lost", err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it stopped after %s, want by the TTL of 30 s", took)
		}
	})
}

func TestImportWritesUnderTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		write := func(row string) error {
			if !k.Held("import") {
				t.Errorf("row %q is written without the lock", row)
			}
			k.DropReplies(1) // no answer that is lost makes a difference
			return nil
		}
		if err := importRows(t.Context(), k.Client, []string{"a", "b"}, write); err != nil {
			t.Error(err)
		}
	})
}

func TestImportNeedsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		k.SlowStore(time.Hour) // it does not answer
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := importRows(ctx, k.Client, []string{"a"}, func(row string) error {
			t.Errorf("row %q is written without the lock", row)
			return nil
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that of the context", err)
		}
	})
}

func TestTwoImportsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := holdfasttest.New(t)
		other := k.NewClient(&holdfast.Options{TTL: 10 * time.Second}) // as another process would
		done := make(chan error, 2)
		for _, client := range []*holdfast.Client{k.Client, other} {
			go func() {
				done <- importRows(t.Context(), client, []string{"a", "b"}, func(string) error { return nil })
			}()
		}
		began := time.Now()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 4*time.Minute {
			t.Errorf("both were done after %s, want two minutes each", took)
		}
	})
}
