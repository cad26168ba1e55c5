package onetime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func newFailures(burst int, every time.Duration, callers int) *failures {
	return &failures{limit: FailureLimit{Burst: burst, Every: every, MaxCallers: callers}, callers: map[callerKey]*caller{}}
}

// attempt makes one attempt that ends at once. It returns 0 if the attempt was admitted, and else
// how long to wait.
func attempt(t *testing.T, f *failures, name string, failed bool) (retryAfter time.Duration) {
	t.Helper()
	err := f.enter(t.Context(), name)
	var tooMany *TooManyAttemptsError
	switch {
	case err == nil:
		f.leave(name, failed)
	case errors.As(err, &tooMany) && errors.Is(err, ErrTooManyAttempts):
		if tooMany.RetryAfter <= 0 {
			t.Errorf("RetryAfter = %s", tooMany.RetryAfter)
		}
		return tooMany.RetryAfter
	default:
		t.Errorf("enter: %v", err)
	}
	return 0
}

func TestTokenBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailures(3, 6*time.Second, 100)
		for range 100 {
			if attempt(t, f, "a", false) != 0 {
				t.Fatal("a caller whose attempts succeed was refused")
			}
		}
		for i := range 3 {
			if after := attempt(t, f, "a", true); after != 0 {
				t.Fatalf("refused after %d failures", i)
			}
		}
		for range 2 { // a refusal does not count
			if after := attempt(t, f, "a", true); after != 6*time.Second {
				t.Errorf("retry after %s, want 6s", after)
			}
		}
		if attempt(t, f, "b", true) != 0 {
			t.Error("another caller was refused")
		}
		time.Sleep(6*time.Second - 1)
		if after := attempt(t, f, "a", true); after != 1 {
			t.Errorf("retry after %s, want 1ns", after)
		}
		time.Sleep(time.Nanosecond)
		if attempt(t, f, "a", false) != 0 || attempt(t, f, "a", true) != 0 || attempt(t, f, "a", true) != 6*time.Second {
			t.Error("want one more failure after 6s")
		}
		// The bucket never has more room than Burst.
		time.Sleep(24 * time.Hour)
		for range 3 {
			if attempt(t, f, "a", true) != 0 {
				t.Error("refused after a day")
			}
		}
		if attempt(t, f, "a", true) == 0 {
			t.Error("admitted after 3 failures")
		}
		for range 10 {
			if attempt(t, f, "", true) != 0 {
				t.Error("nobody was refused")
			}
		}
	})
}

// TestAttemptsTogether checks that concurrent attempts cannot fail more often than attempts in
// sequence, and that attempts that succeed cause no refusal.
func TestAttemptsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailures(5, time.Hour, 100)
		var wg sync.WaitGroup
		together := func(n int, failed bool) (admitted, most int) {
			var mu sync.Mutex
			now := 0
			for range n {
				wg.Go(func() {
					if err := f.enter(t.Context(), "a"); err != nil {
						return
					}
					mu.Lock()
					admitted++
					now++
					most = max(most, now)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					now--
					mu.Unlock()
					f.leave("a", failed)
				})
			}
			wg.Wait()
			return admitted, most
		}
		if admitted, most := together(100, false); admitted != 100 || most != 5 {
			t.Errorf("%d of 100 that succeed were admitted, %d at a time; want all, 5 at a time", admitted, most)
		}
		if len(f.callers) != 0 {
			t.Errorf("%d callers are remembered who have not failed", len(f.callers))
		}
		if admitted, _ := together(100, true); admitted != 5 {
			t.Errorf("%d of 100 that fail were admitted, want 5", admitted)
		}

		// A caller that waits for another attempt can give up.
		f = newFailures(1, time.Hour, 100)
		if err := f.enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.enter(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("enter = %v, want the end of its context", err)
		}
		f.leave("a", false)
		if attempt(t, f, "a", true) != 0 {
			t.Error("refused after a success")
		}
	})
}

// TestCallersAreBounded checks that the number of remembered callers is bounded, however many
// callers fail. The callers with the most failures stay.
func TestCallersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 1000
		f := newFailures(3, time.Hour, callers)
		for i := range callers / 100 {
			for range 3 {
				attempt(t, f, fmt.Sprint("bad ", i), true)
			}
		}
		for i := range 3 * callers {
			attempt(t, f, fmt.Sprint("caller ", i), true)
			if len(f.callers) > callers {
				t.Fatalf("%d callers are remembered, want at most %d", len(f.callers), callers)
			}
		}
		kept := 0
		for i := range callers / 100 {
			if attempt(t, f, fmt.Sprint("bad ", i), false) != 0 {
				kept++
			}
		}
		// A bad caller is forgotten only if all of a sample of eight are bad.
		if kept != callers/100 {
			t.Errorf("%d of %d who failed most often are remembered", kept, callers/100)
		}

		// Callers with an attempt in progress are not forgotten, however many others come.
		f = newFailures(3, time.Hour, 2)
		for i := range 10 {
			if err := f.enter(t.Context(), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 10 {
			f.leave(fmt.Sprint(i), true)
		}
		attempt(t, f, "one more", true)
		if n := len(f.callers); n > 10 {
			t.Errorf("%d callers are remembered after 10 at a time", n)
		}
	})
}
