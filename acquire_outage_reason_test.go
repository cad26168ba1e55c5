package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// TestEndOfWaitSaysWhy: a wait that ends while the store refuses says what the
// store said, not only that there was no answer.
func TestEndOfWaitSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty()
		f.set(func(_ context.Context, op string) error {
			if op != "acquire" {
				return nil
			}
			return fmt.Errorf("%w: in quarantine for another 5m", holdfast.ErrUnavailable)
		}, nil)
		c, err := holdfast.New(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		start := time.Now()
		_, err = c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{Wait: time.Second})
		if took := time.Since(start); !errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), "in quarantine for another 5m") || took != time.Second {
			t.Errorf("after %s: %v; want what the store said", took, err)
		}
	})
}

// TestShortWaitOnABusyStore: a wait that ends while the store has been thinking for some
// milliseconds ends with what the store said before, however short the wait is. One that
// has been silent for longer may have another holder by now.
func TestShortWaitOnABusyStore(t *testing.T) {
	for wait, want := range map[time.Duration]error{
		20 * time.Millisecond:  holdfast.ErrHeld,
		300 * time.Millisecond: holdfast.ErrUnavailable,
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c := newClient(t, plain{engine}, nil)
			release := foreign(t, engine, "a", time.Minute)
			calls := 0
			engine.set(func(ctx context.Context, op string) error {
				if op == "acquire" {
					if calls++; calls > 1 {
						<-ctx.Done()
						return fmt.Errorf("%w: no answer", holdfast.ErrUnavailable)
					}
				}
				return nil
			}, nil)
			_, err := c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{Wait: wait})
			wantErr(t, err, want)
			engine.heal()
			release()
		})
	}
}
