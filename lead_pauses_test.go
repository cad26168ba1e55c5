package holdfast_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// TestLeadPausesAfterFailures checks that a candidate whose work fails lets others lead. It returns
// after pauses that grow until it has led for long.
func TestLeadPausesAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, other := newClient(t, engine, nil), newClient(t, engine, nil)
		var pauses []time.Duration
		calls, start := 0, time.Now()
		err := c.Lead(t.Context(), "a", &holdfast.LeadOptions{
			Pause: 2 * time.Second, LongestPause: 10 * time.Second,
			Failed: func(err error, pause time.Duration) {
				wantErr(t, err, errWork)
				pauses = append(pauses, pause)
				l, err := other.TryAcquire(t.Context(), "a", nil)
				need(t, err == nil, "during the pause: %v", err)
				l.Release(t.Context())
			},
		}, func(context.Context, *holdfast.Lease) error {
			switch calls++; calls {
			case 6:
				time.Sleep(10 * time.Second)
			case 8:
				return nil
			}
			return errWork
		})
		need(t, err == nil && calls == 8 && len(pauses) == 7, "Lead: %v after %d calls and %d pauses", err, calls, len(pauses))
		took := 10 * time.Second
		for i, whole := range []time.Duration{2, 4, 8, 10, 10, 2, 4} {
			took += pauses[i]
			if whole *= time.Second; pauses[i] < whole/2 || pauses[i] > whole {
				t.Errorf("pause %d is %s, want %s to %s", i, pauses[i], whole/2, whole)
			}
		}
		since := time.Since(start)
		expect(t, since == took, "it took %s, of which the pauses and the work are %s", since, took)
	})
}

// TestLeadPausesAfterAnotherLoss checks that a leader whose work loses another lease still leads,
// and pauses as after any failure.
func TestLeadPausesAfterAnotherLoss(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		var pauses []time.Duration
		opts := &holdfast.LeadOptions{Failed: func(_ error, pause time.Duration) { pauses = append(pauses, pause) }}
		must(t, c.Lead(t.Context(), "a", opts, func(ctx context.Context, _ *holdfast.Lease) error {
			if len(pauses) == 3 {
				return nil
			}
			return c.Do(ctx, "b", &holdfast.AcquireOptions{MaxHold: 2 * time.Second}, func(ctx context.Context, _ *holdfast.Lease) error {
				<-ctx.Done()
				return nil
			})
		}))
		expect(t, !slices.Contains(pauses, 0), "pauses of %v", pauses)
	})
}
