package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// The examples take no time. These tests run their functions with realistic durations, in virtual
// time.

// TestArmMovesForTenSeconds checks that five steps of two seconds use one lease, which is extended
// four times.
func TestArmMovesForTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, other := newClient(t, engine, nil), newClient(t, engine, nil)
		start, steps := time.Now(), make([]func(context.Context) error, 5)
		for i := range steps {
			steps[i] = func(ctx context.Context) error {
				time.Sleep(2 * time.Second)
				if _, err := other.TryAcquire(t.Context(), "robot/arm", nil); !errors.Is(err, holdfast.ErrHeld) {
					t.Errorf("after step %d: %v, want that the arm is still ours", i+1, err)
				}
				return ctx.Err()
			}
		}
		if err := moveArm(t.Context(), c, steps); err != nil || time.Since(start) != 10*time.Second || engine.count("extend") != 4 {
			t.Errorf("after %s and %d requests to extend: %v", time.Since(start), engine.count("extend"), err)
		}
		nothingLeft(t, engine, "robot/arm")
	})
}

// TestArmThatHangs checks that the context of a step that hangs ends with the step's time. Another
// client then acquires the arm, and moveArm makes no further step.
func TestArmThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, other := newClient(t, engine, nil), newClient(t, engine, nil)
		moved := 0
		move := func(context.Context) error {
			moved++
			time.Sleep(2 * time.Second)
			return nil
		}
		hang := func(ctx context.Context) error {
			start := time.Now()
			time.AfterFunc(0, func() {
				l, err := other.Acquire(t.Context(), "robot/arm", nil)
				if took := time.Since(start); err != nil || took < 2*time.Second || took > 3100*time.Millisecond {
					t.Errorf("the next one has it after %s: %v; want 2 to 3 s", took, err)
				} else {
					l.Release(t.Context())
				}
			})
			<-ctx.Done()
			if took := time.Since(start); took < 2*time.Second || took > 3*time.Second {
				t.Errorf("the step was notified after %s, want 2 to 3 s", took)
			}
			return nil
		}
		err := moveArm(t.Context(), c, []func(context.Context) error{move, hang, move})
		if wantErr(t, err, holdfast.ErrLost); moved != 1 {
			t.Errorf("it moved %d times, want once", moved)
		}
		time.Sleep(time.Second)
		nothingLeft(t, engine, "robot/arm")
	})
}

// TestLoadingStalls checks that loadAll ends as its options demand.
func TestLoadingStalls(t *testing.T) {
	hang := func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	slow := func(ctx context.Context, _ string) error {
		select {
		case <-time.After(50 * time.Second):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for name, tt := range map[string]struct {
		load          func(context.Context, string) error
		want          error
		says          string
		atLeast, most time.Duration
	}{
		"hangs": {hang, holdfast.ErrStalled, "one file took too long: ", time.Minute, time.Minute + 30*time.Second},
		"slow":  {slow, holdfast.ErrMaxHold, "all of it took too long: ", time.Hour - time.Minute, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := loadAll(t.Context(), newClient(t, newFaulty(), nil), make([]string, 100), tt.load)
				wantErr(t, err, tt.want)
				if took := time.Since(start); took < tt.atLeast || took > tt.most || !strings.HasPrefix(err.Error(), tt.says) {
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}

// TestShopLimits checks that no caller waits for a hanging seller for longer than the limits.
func TestShopLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		s := &shop{client: newClient(t, engine, nil), stock: map[string]int{"lamp": 1}}
		hung := make(chan error)
		go func() {
			hung <- s.client.Do(t.Context(), "catalog", limits(holdfast.Shared), func(ctx context.Context, _ *holdfast.Lease) error {
				<-ctx.Done()
				return nil
			})
		}()
		synctest.Wait()
		start := time.Now()
		wantErr(t, s.change(t.Context(), func(map[string]int) { t.Error("changed while somebody sells") }), holdfast.ErrHeld)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("waited for %s, want 2s", took)
		}
		wantErr(t, s.sell(t.Context(), "lamp"), nil) // while the other sale hangs
		wantErr(t, <-hung, holdfast.ErrMaxHold)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("the one that hangs has lost it after %s, want 5s", took)
		}
		wantErr(t, s.change(t.Context(), func(stock map[string]int) { stock["lamp"] = 3 }), nil)
		synctest.Wait()
		nothingLeft(t, engine, "catalog", "catalog/lamp")
	})
}
