package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A brief engine keeps no lease for longer than a minute. It counts requests.
type brief struct {
	*memlock.Engine
	asked int
}

func (b *brief) Capabilities() driver.Capabilities {
	c := b.Engine.Capabilities()
	c.MaxTTL = time.Minute
	return c
}

func (b *brief) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	b.asked++
	return b.Engine.Acquire(ctx, req)
}

// TestMaxTTLIsCheckedAtAcquire: what the store could not keep to the end is
// refused before anything is sent, MinHold included: refused at the release, it
// would let the work run twice.
func TestMaxTTLIsCheckedAtAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &brief{Engine: memlock.New()}
		c, err := holdfast.New(engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		const long = time.Minute + time.Millisecond
		for name, opts := range map[string]*holdfast.AcquireOptions{
			"TTL":       {TTL: long},
			"MinHold":   {MinHold: long},
			"LockDelay": {TTL: 40 * time.Second, LockDelay: 21 * time.Second},
		} {
			_, err := c.Acquire(t.Context(), name, opts)
			_, tryErr := c.TryAcquire(t.Context(), name+" at once", opts)
			_, allErr := c.AcquireAll(t.Context(), []string{name + " and", name + " more"}, opts)
			if !errors.Is(err, holdfast.ErrInvalid) || !errors.Is(tryErr, holdfast.ErrInvalid) || !errors.Is(allErr, holdfast.ErrInvalid) {
				t.Errorf("%s: %v, %v, %v; want ErrInvalid", name, err, tryErr, allErr)
			}
		}
		if engine.asked != 0 {
			t.Errorf("%d requests were sent", engine.asked)
		}
		lease, err := c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{TTL: 30 * time.Second, LockDelay: 30 * time.Second, MinHold: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Extend(t.Context(), 31*time.Second); !errors.Is(err, holdfast.ErrInvalid) || !lease.Valid() {
			t.Errorf("Extend: %v, want ErrInvalid", err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
