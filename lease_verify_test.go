package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

func TestVerify(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", nil)
		if err := l.Verify(t.Context()); err != nil {
			t.Errorf("a live lease: %v", err)
		}
		engine.set(fail(errLink, "extend"), nil)
		err := l.Verify(t.Context())
		wantErr(t, err, holdfast.ErrUnavailable)
		expect(t, l.Valid(), "a failure to ask ended the lease")
		engine.heal()
		engine.Engine.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: l.ID()})
		wantErr(t, l.Verify(t.Context()), holdfast.ErrLost)
		wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
		wantErr(t, l.Verify(t.Context()), holdfast.ErrLost)
	})
}

// TestVerifyUnderAnotherLease: the loss of another lease, which ends the context of Verify, is not the
// loss of this one.
func TestVerifyUnderAnotherLease(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", nil)
		outer := mustAcquire(t, c, "outer", &holdfast.AcquireOptions{TTL: 2 * time.Second, KeepAlive: holdfast.KeepAliveOff})
		engine.set(hang("extend"), nil)
		wantErr(t, l.Verify(outer.Context()), context.Canceled)
		expect(t, l.Valid(), "the lease has ended: %v", context.Cause(l.Context()))
		engine.heal()
	})
}

// TestLateReplies: a reply that comes after the deadline does not hide that the lease is lost.
func TestLateReplies(t *testing.T) {
	for name, call := range map[string]func(context.Context, *holdfast.Lease) error{
		"verify":    func(ctx context.Context, l *holdfast.Lease) error { return l.Verify(ctx) },
		"downgrade": func(ctx context.Context, l *holdfast.Lease) error { return l.Downgrade(ctx) },
		"extend":    func(ctx context.Context, l *holdfast.Lease) error { return l.Extend(ctx, time.Minute) },
	} {
		runWithClient(t, name, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 3 * time.Second, KeepAlive: holdfast.KeepAliveOff})
			engine.set(nil, delay(2800*time.Millisecond))
			wantErr(t, call(t.Context(), l), holdfast.ErrLost)
		})
	}
}
