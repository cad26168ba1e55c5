package rediscore

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A bypass is a depot with a lane.
type bypass struct {
	*depot
	free   bool
	sent   bool
	err    error
	direct int
}

func (b *bypass) Begin(context.Context) Lane {
	if !b.free {
		return nil
	}
	return b
}

func (b *bypass) DirectSHA(context.Context, string, []string, []string) (any, bool, error) {
	b.direct++
	return int64(1), b.sent, b.err
}

func (b *bypass) DirectInts(_ context.Context, _ string, keys, _ []string, to []int64) ([]int64, bool, error) {
	b.direct++
	return append(to, int64(len(keys))), b.sent, b.err
}

// A caller sends its request itself if few others are in flight. Many requests share calls. So does
// a request that was not sent, or whose script the server does not know.
func TestDirect(t *testing.T) {
	inDepot(t, false, func(t *testing.T, d *depot, e *engine, f *batcher) {
		b := &bypass{depot: d, free: true, sent: true}
		e.store.direct = b
		for _, c := range []struct {
			free, sent bool
			err        error
			batches    int
		}{
			{free: true, sent: true}, {free: true, sent: true, err: ReplyError("OOM")},
			{free: true, batches: 1}, {sent: true, batches: 1}, {free: true, sent: true, err: ReplyError("NOSCRIPT"), batches: 1},
		} {
			before := len(d.seen())
			b.free, b.sent, b.err = c.free, c.sent, c.err
			p := board(t, f, "n/5")[0]
			if n := len(d.seen()) - before; n != c.batches {
				t.Fatalf("%+v: %d batches", c, n)
			}
			want := int64(2)
			if c.batches > 0 {
				d.seen()[before].end <- nil
				want, c.err = 5, nil
			}
			if !p.left() || !errors.Is(p.err, c.err) || p.err == nil && p.n != want {
				t.Errorf("%+v: %d, %v", c, p.n, p.err)
			}
		}
		b.free, b.sent, b.err, b.direct = false, true, nil, 0
		full := func() (direct bool) {
			before := b.direct
			reply, err := e.store.Eval(t.Context(), e.scripts.Release, nil, nil)
			if direct = b.direct > before; err != nil || direct == (reply == nil) { // the depot's reply is nil
				t.Errorf("%v, %v", reply, err)
			}
			return direct
		}
		all := board(t, f, numbered("n", 1, MostDirect-1)...)
		b.free = true
		if !full() {
			t.Error("a request beside few others is not made by its caller")
		}
		_ = e.Extend(t.Context(), []driver.ExtendRequest{{Name: "a", LeaseID: lockinfo.NewLeaseID()}})
		if b.direct != 1 {
			t.Error("a renewal is made on a lane")
		}
		b.free = false
		all = append(all, board(t, e.plain.acquires, "n/9")...)
		b.free = true
		if full() {
			t.Error("one request of many is made by its caller")
		}
		for _, c := range d.seen()[len(d.seen())-len(all):] {
			c.end <- nil
		}
		d.seen() // their flushers have ended
		if board(t, f, "n/3"); !all[0].left() || b.direct != 2 {
			t.Error("a request after many is not made by its caller")
		}
	})
}

// The outcome of a direct request without a reply is unknown: the error shows whether the caller's
// context or the engine has ended.
func TestDirectWithoutReply(t *testing.T) {
	d := &depot{}
	e := mustNew(t, d)
	b := &bypass{depot: d, free: true, sent: true, err: ErrGivenUp}
	e.store.direct = b
	ask := func(ctx context.Context) error {
		_, err := e.plain.releases.do(ctx, e.plain.releases.newRequest("n/1", lockinfo.NewLeaseID()))
		return err
	}
	if err := ask(t.Context()); !errors.Is(err, ErrGivenUp) {
		t.Errorf("no reply: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ask(ctx); !errors.Is(err, context.Canceled) || driver.Definite(err) {
		t.Errorf("no reply, and the caller has left: %v", err)
	}
	_ = e.Close()
	if err := ask(t.Context()); !errors.Is(err, errClosing) {
		t.Errorf("no reply, and the engine is closed: %v", err)
	}
}
