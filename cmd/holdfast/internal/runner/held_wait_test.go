//go:build unix

package runner

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Modes of the tests.
const (
	alone  = lockinfo.Exclusive
	shares = lockinfo.Shared
)

// holds returns a lease with a token and a mode.
func holds(token uint64, m lockinfo.Mode) lockinfo.Holding {
	return lockinfo.Holding{Token: token, Mode: m, LeaseID: "l", ExpiresIn: time.Minute}
}

func closed(h lockinfo.Holding) lockinfo.Holding {
	h.Released = true
	return h
}

func waits(m lockinfo.Mode, pid int) lockinfo.Place {
	host, _ := os.Hostname()
	return lockinfo.Place{Mode: m, Holder: lockinfo.Holder{Host: host, PID: pid}}
}

// TestBlock checks in which states a command would wait for itself. Its outer runs hold the tokens
// 1 and 2.
func TestBlock(t *testing.T) {
	const other = 9 // a token and a process of another run
	me := os.Getpid()
	for what, c := range map[string]struct {
		of      lockinfo.Mode // kind and limit of the lock
		holders []lockinfo.Holding
		queue   []lockinfo.Place
		want    lockinfo.Mode
		try     bool
		blocks  bool
	}{
		"nobody":                    {alone, nil, nil, alone, false, false},
		"own":                       {alone, []lockinfo.Holding{holds(1, alone)}, nil, alone, false, true},
		"own, trying":               {alone, []lockinfo.Holding{holds(1, alone)}, nil, alone, true, true},
		"own, to share":             {alone, []lockinfo.Holding{holds(1, alone)}, nil, shares, false, true},
		"own is closed":             {alone, []lockinfo.Holding{closed(holds(1, alone))}, nil, alone, false, false},
		"another's":                 {alone, []lockinfo.Holding{holds(other, alone)}, nil, alone, false, false},
		"a foreign client's":        {alone, []lockinfo.Holding{{ExpiresIn: lockinfo.Never}}, nil, alone, false, false},
		"own share":                 {shares, []lockinfo.Holding{holds(other, shares), holds(2, shares)}, nil, alone, false, true},
		"others' shares":            {shares, []lockinfo.Holding{holds(other, shares)}, nil, alone, false, false},
		"to share it":               {shares, []lockinfo.Holding{holds(1, shares)}, nil, shares, false, false},
		"behind one who waits":      {shares, []lockinfo.Holding{holds(1, shares)}, []lockinfo.Place{waits(alone, other), waits(shares, me)}, shares, false, true},
		"behind one, trying":        {shares, []lockinfo.Holding{holds(1, shares)}, []lockinfo.Place{waits(alone, other)}, shares, true, false},
		"before one who waits":      {shares, []lockinfo.Holding{holds(1, shares)}, []lockinfo.Place{waits(shares, me), waits(alone, other)}, shares, false, false},
		"behind one who shares":     {shares, []lockinfo.Holding{holds(1, shares)}, []lockinfo.Place{waits(shares, other), waits(shares, me)}, shares, false, false},
		"behind, without own":       {shares, []lockinfo.Holding{holds(other, shares)}, []lockinfo.Place{waits(alone, other), waits(shares, me)}, shares, false, false},
		"own permits":               {lockinfo.Permits(1, 3), []lockinfo.Holding{holds(1, lockinfo.Permits(2, 3))}, nil, lockinfo.Permits(2, 3), false, true},
		"others' permits":           {lockinfo.Permits(1, 3), []lockinfo.Holding{holds(1, lockinfo.Permits(1, 3)), holds(other, lockinfo.Permits(2, 3))}, nil, lockinfo.Permits(2, 3), false, false},
		"permits of two runs":       {lockinfo.Permits(1, 3), []lockinfo.Holding{holds(1, lockinfo.Permits(1, 3)), holds(2, lockinfo.Permits(1, 3)), holds(other, lockinfo.Permits(1, 3))}, nil, lockinfo.Permits(2, 3), false, true},
		"behind a large one":        {lockinfo.Permits(1, 3), []lockinfo.Holding{holds(1, lockinfo.Permits(1, 3)), holds(other, lockinfo.Permits(2, 3))}, []lockinfo.Place{waits(lockinfo.Permits(3, 3), other), waits(lockinfo.Permits(1, 3), me)}, lockinfo.Permits(1, 3), false, true},
		"behind one who will do":    {lockinfo.Permits(1, 3), []lockinfo.Holding{holds(1, lockinfo.Permits(1, 3)), holds(other, lockinfo.Permits(2, 3))}, []lockinfo.Place{waits(lockinfo.Permits(2, 3), other), waits(lockinfo.Permits(1, 3), me)}, lockinfo.Permits(1, 3), false, false},
		"own and a stranger's host": {shares, []lockinfo.Holding{holds(1, shares)}, []lockinfo.Place{{Mode: lockinfo.Exclusive, Holder: lockinfo.Holder{Host: "elsewhere", PID: me}}}, shares, false, true},
	} {
		state := lockinfo.LockState{Name: "a", Mode: c.of, Holders: c.holders, Queue: c.queue}
		self := Held{{1, "", "a"}, {2, "", "a"}}.block(state, c.want, c.try)
		if (self != nil) != c.blocks {
			t.Errorf("%s: %v", what, self)
		}
		if self != nil && (self.Via != nil) != (len(c.queue) > 0) {
			t.Errorf("%s: who is in the way is %v", what, self.Via)
		}
	}
}

// A scene is a store in memory, with clients of an outer run, of an inner run and of another
// process.
type scene struct {
	outer, inner, other *holdfast.Client
}

func newScene(t *testing.T) scene {
	t.Helper()
	store := mem.New(nil)
	client := func(pid int) *holdfast.Client {
		host, _ := os.Hostname()
		c, err := holdfast.New(store, &holdfast.Options{Holder: holdfast.Holder{Host: host, PID: pid}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // never fails in memory
		return c
	}
	return scene{client(1), client(os.Getpid()), client(3)}
}

// acquires acquires the lock as an inner run does.
func (s scene) acquires(t *testing.T, held Held, o holdfast.AcquireOptions) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // for ever
	defer cancel()
	j := Job{Outer: held, Client: s.inner, Names: []string{"a"}, Opts: o}
	return j.unlessBlocked(ctx, &o.OnWait, func(ctx context.Context) error {
		l, err := s.inner.Acquire(ctx, "a", &o)
		if err == nil {
			_ = l.Release(ctx) // never fails in memory
		}
		return err
	})
}

func take(t *testing.T, c *holdfast.Client, o *holdfast.AcquireOptions) *holdfast.Lease {
	t.Helper()
	l, err := c.Acquire(t.Context(), "a", o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func heldOf(l *holdfast.Lease) Held { return Held{{l.Token(), "memory:", l.Name()}} }

// TestTakeRefusesItself checks that a run that waits for a run around it gets an error at once, and
// leaves no place in the queue.
func TestTakeRefusesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		outer := take(t, s.outer, nil)
		began := time.Now()
		err := s.acquires(t, heldOf(outer), holdfast.AcquireOptions{})
		if self := (*selfError)(nil); !errors.As(err, &self) || !errors.Is(err, holdfast.ErrDeadlock) || self.Token != outer.Token() {
			t.Errorf("%v", err)
		}
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("it waited for %s", waited)
		}
		time.Sleep(time.Second)
		if lock, err := s.inner.Inspect(t.Context(), "a"); err != nil || lock.QueueLength > 0 {
			t.Errorf("%+v, %v", lock, err)
		}
	})
}

// TestTakeWaitsForOthers checks that a token that is no longer held does not block a run, and that
// the caller's OnWait is still called.
func TestTakeWaitsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		outer := take(t, s.outer, nil)
		held := heldOf(outer)
		_ = outer.Release(t.Context()) // never fails in memory
		other := take(t, s.other, nil)
		time.AfterFunc(time.Minute, func() { _ = other.Release(context.Background()) })
		told := 0
		began := time.Now()
		err := s.acquires(t, held, holdfast.AcquireOptions{OnWait: func(holdfast.WaitState) { told++ }})
		if waited := time.Since(began); err != nil || waited < time.Minute || told == 0 {
			t.Errorf("%v after %s, told %d times", err, waited, told)
		}
	})
}

// TestTakeSeesWhoCameBefore: another client waits for the outer run, and the inner run behind that
// client, so that the wait would never end. Without that client the inner run gets the lock.
func TestTakeSeesWhoCameBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		outer := take(t, s.outer, &holdfast.AcquireOptions{Mode: holdfast.Shared})
		waiting, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() { // ends with waiting
			defer close(gone)
			if l, err := s.other.Acquire(waiting, "a", nil); err == nil {
				t.Errorf("%v was granted beside the outer run", l)
			}
		}()
		synctest.Wait()
		err := s.acquires(t, heldOf(outer), holdfast.AcquireOptions{Mode: holdfast.Shared})
		if self := (*selfError)(nil); !errors.As(err, &self) || self.Via == nil || self.Via.PID != 3 {
			t.Errorf("%v", err)
		}
		cancel()
		<-gone
		synctest.Wait()
		if err := s.acquires(t, heldOf(outer), holdfast.AcquireOptions{Mode: holdfast.Shared}); err != nil {
			t.Error(err)
		}
	})
}
