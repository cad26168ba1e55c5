package systest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncpool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-locks/holdfast"
)

// A foreigner takes the lock of a key with another library. take reports whether it got the lock;
// give releases the lock and reports whether the foreigner still held it.
type foreigner struct {
	name   string
	key    string // of the lock named "job"
	prefix string // the prefix with which holdfast uses the same key
	take   func(t *testing.T, s *store) (give func() bool, taken bool)
}

// foreigners are the libraries of docs/comparison.md whose lock is one string key, like an
// exclusive lock of holdfast.
var foreigners = []foreigner{
	{"redsync", "job", "", func(t *testing.T, s *store) (func() bool, bool) {
		m := redsync.New(redsyncpool.NewPool(goRedis(t, s))).NewMutex("job")
		err := m.TryLockContext(t.Context())
		if taken := (*redsync.ErrTaken)(nil); err != nil && !errors.As(err, &taken) {
			t.Errorf("redsync: %v", err)
		}
		return func() bool { ok, _ := m.UnlockContext(context.WithoutCancel(t.Context())); return ok }, err == nil
	}},
	{"bsm/redislock", "job", "", func(t *testing.T, s *store) (func() bool, bool) {
		lock, err := bsm.Obtain(t.Context(), goRedis(t, s), "job", time.Minute, nil)
		if err != nil && !errors.Is(err, bsm.ErrNotObtained) {
			t.Errorf("redislock: %v", err)
		}
		return func() bool { return lock.Release(context.WithoutCancel(t.Context())) == nil }, err == nil
	}},
	{"rueidislock with KeyMajority 1", "rueidislock:0:job", "rueidislock:0:", func(t *testing.T, s *store) (func() bool, bool) {
		locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: []string{s.server.Addr}}, KeyMajority: 1, NoLoopTracking: true, KeyValidity: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(locker.Close)
		ctx, cancel, err := locker.TryWithContext(t.Context(), "job")
		if err != nil && !errors.Is(err, rueidislock.ErrNotLocked) {
			t.Errorf("rueidislock: %v", err)
		}
		return func() bool { held := ctx.Err() == nil; cancel(); return held }, err == nil
	}},
	{"ShedLock on Redis, as it calls it", "job-lock:default:job", "job-lock:default:", byHand("job-lock:default:job")},
	{"SET NX PX by hand", "job", "", byHand("job")},
}

// byHand locks with SET NX PX and unlocks with a script that compares and deletes.
func byHand(key string) func(t *testing.T, s *store) (func() bool, bool) {
	const release = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`
	return func(t *testing.T, s *store) (func() bool, bool) {
		err := s.plain.Do(t.Context(), s.plain.B().Set().Key(key).Value("me").Nx().PxMilliseconds(60000).Build()).Error()
		if err != nil && !rueidis.IsRedisNil(err) {
			t.Error(err)
		}
		return func() bool {
			n, _ := s.plain.Do(context.WithoutCancel(t.Context()), s.plain.B().Eval().Script(release).Numkeys(1).Key(key).Arg("me").Build()).AsInt64()
			return n == 1
		}, err == nil
	}
}

// TestForeignersExclude checks that holdfast and other libraries exclude each other on one key, in
// both directions, and that neither releases the other's lock.
func TestForeignersExclude(t *testing.T) {
	for _, f := range foreigners {
		t.Run(f.name, func(t *testing.T) {
			s := newStore(t)
			client := newClient(t, openEngine(t, s.server.URL+"?prefix="+f.prefix), nil)

			lease, err := client.TryAcquire(t.Context(), "job", nil)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := s.plain.Do(t.Context(), s.plain.B().Exists().Key(f.key).Build()).AsInt64(); n != 1 || err != nil {
				t.Fatalf("holdfast's lock is not the key %s (%v)", f.key, err)
			}
			if _, taken := f.take(t, s); taken {
				t.Error("it has the lock that holdfast holds")
			}
			if err := lease.Extend(t.Context(), time.Minute); err != nil {
				t.Errorf("after its attempt: %v", err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}

			give, taken := f.take(t, s)
			if !taken {
				t.Fatal("it does not get the lock that holdfast has released")
			}
			held := (*holdfast.HeldError)(nil)
			if _, err := client.TryAcquire(t.Context(), "job", nil); !errors.As(err, &held) || !held.Foreign {
				t.Errorf("holdfast, while it has the lock: %v; want a *HeldError that says Foreign", err)
			}
			if !give() {
				t.Error("holdfast's attempt has ended its lock")
			}
			if lease, err = client.Acquire(t.Context(), "job", &holdfast.AcquireOptions{MaxWait: patience}); err != nil {
				t.Fatalf("after it was given back: %v", err)
			}
			if give() {
				t.Error("it has given back what holdfast holds")
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHashIsNotALock checks the key of a Redisson lock, which is a hash. Neither library gets a
// lock on the other's key, and each reports the wrong type.
func TestHashIsNotALock(t *testing.T) {
	s := newStore(t)
	client := newClient(t, s.engine, nil)
	do := func(args ...string) error {
		return s.plain.Do(t.Context(), s.plain.B().Arbitrary(args...).Build()).Error()
	}
	if err := do("HSET", "job", "8c3f4a1e:1", "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.TryAcquire(t.Context(), "job", nil); !errors.Is(err, holdfast.ErrKindMismatch) {
		t.Errorf("on a hash: %v, want ErrKindMismatch", err)
	}
	if err := do("DEL", "job"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.TryAcquire(t.Context(), "job", nil); err != nil {
		t.Fatal(err)
	}
	if err := do("HEXISTS", "job", "8c3f4a1e:1"); err == nil {
		t.Error("a hash's command works on a lock of holdfast")
	}
}

// A regime is how a version of a program locks.
type regime func(ctx context.Context) (give func(), err error)

// inTurn runs three workers of each regime for d. It returns how often two worked at once, and the
// number of turns.
func inTurn(t *testing.T, d time.Duration, regimes ...regime) (overlaps, turns int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var working, over, all atomic.Int64
	var wg sync.WaitGroup
	for _, r := range regimes {
		for range 3 {
			wg.Go(func() {
				for ctx.Err() == nil {
					give, err := r(ctx)
					if err != nil {
						continue // ctx has ended, or the lock of redsync was taken
					}
					if working.Add(1) > 1 {
						over.Add(1)
					}
					all.Add(1)
					time.Sleep(time.Millisecond)
					working.Add(-1)
					give()
				}
			})
		}
	}
	wg.Wait()
	return over.Load(), all.Load()
}

// TestChangeOfRegimes runs the two roll-outs of docs/comparison.md for a library that shares no key
// with holdfast. At no step do two workers overlap, and without the step in the middle they do.
func TestChangeOfRegimes(t *testing.T) {
	s := newStore(t)
	client := newClient(t, s.engine, nil)
	rs := redsync.New(redsyncpool.NewPool(goRedis(t, s)))
	old := func(ctx context.Context) (func(), error) { // on a key of its own
		m := rs.NewMutex("old:job", redsync.WithTries(1<<30), redsync.WithRetryDelay(2*time.Millisecond))
		if err := m.LockContext(ctx); err != nil {
			return nil, err
		}
		return func() { _, _ = m.UnlockContext(context.WithoutCancel(ctx)) }, nil
	}
	fresh := func(ctx context.Context) (func(), error) {
		lease, err := client.Acquire(ctx, "job", nil)
		if err != nil {
			return nil, err
		}
		return func() { _ = lease.Release(context.WithoutCancel(ctx)) }, nil
	}
	both := func(ctx context.Context) (func(), error) { // the old lock first
		giveOld, err := old(ctx)
		if err != nil {
			return nil, err
		}
		giveNew, err := fresh(ctx)
		if err != nil {
			giveOld()
			return nil, err
		}
		return func() { giveNew(); giveOld() }, nil
	}
	const d = 300 * time.Millisecond
	for _, step := range []struct {
		name    string
		regimes []regime
	}{
		{"before", []regime{old}},
		{"first roll-out: both beside old", []regime{old, both}},
		{"between", []regime{both}},
		{"second roll-out: new beside both", []regime{both, fresh}},
		{"after", []regime{fresh}},
	} {
		if overlaps, turns := inTurn(t, d, step.regimes...); overlaps > 0 || turns < 5 {
			t.Errorf("%s: %d of %d turns overlapped", step.name, overlaps, turns)
		}
	}
	if overlaps, turns := inTurn(t, d, old, fresh); overlaps == 0 {
		t.Errorf("new beside old: none of %d turns overlapped, and this test sees nothing", turns)
	}
}

// TestPrefixIsARegime checks that clients with different prefixes do not share locks.
func TestPrefixIsARegime(t *testing.T) {
	s := newStore(t)
	for _, prefix := range []string{"", "house:"} {
		if _, err := newClient(t, openEngine(t, s.server.URL+"?prefix="+prefix), nil).TryAcquire(t.Context(), "job", nil); err != nil {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
}
