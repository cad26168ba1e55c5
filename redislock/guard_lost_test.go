package redislock

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A badLock gives each lease a greater token, as a lock must, and ends it after badTTL, whatever
// its holder does.
type badLock struct {
	mu    sync.Mutex
	token uint64
	id    lockinfo.LeaseID
	until time.Time
}

// A holder reads, is paused for up to badPause, and writes: about one write in three comes after
// the lease.
const (
	badTTL   = 4 * time.Millisecond
	badPause = 6 * time.Millisecond
	badTime  = 2 * time.Second
)

// acquire waits for the lock. It returns false when ctx ends.
func (l *badLock) acquire(ctx context.Context) (claim, bool) {
	for ctx.Err() == nil {
		l.mu.Lock()
		now := time.Now()
		if now.After(l.until) {
			l.token, l.id, l.until = l.token+1, lockinfo.NewLeaseID(), now.Add(badTTL)
			c := claim{l.token, l.id}
			l.mu.Unlock()
			return c, true
		}
		left := l.until.Sub(now)
		l.mu.Unlock()
		time.Sleep(left)
	}
	return claim{}, false
}

func (l *badLock) release(c claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == c.id {
		l.until = time.Time{}
	}
}

// A protocol adds one to a counter. pause runs between its read and its write.
type protocol func(ctx context.Context, c claim, pause func()) error

// updates runs workers that add one to a counter under a bad lock. It returns how many additions
// were reported as successful, and how many of those the counter lacks.
func updates(t *testing.T, client rueidis.Client, counter string, add protocol) (acked, lost int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), badTime)
	defer cancel()
	var ok, refused atomic.Int64
	var lock badLock
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				c, live := lock.acquire(ctx)
				if !live {
					return
				}
				err := add(t.Context(), c, func() { time.Sleep(rand.N(badPause)) })
				switch {
				case err == nil:
					ok.Add(1)
				case errors.Is(err, fence.ErrStale):
					refused.Add(1)
				default:
					t.Error(err)
				}
				lock.release(c)
			}
		})
	}
	workers.Wait()
	final, err := read(t.Context(), client, counter)
	if err != nil {
		t.Fatal(err)
	}
	acked = ok.Load()
	lost = acked - final
	t.Logf("%d acknowledged, %d refused, %d lost (%.1f %%)", acked, refused.Load(), lost, 100*float64(lost)/float64(acked))
	return acked, lost
}

// read returns a counter with a plain GET.
func read(ctx context.Context, client rueidis.Client, counter string) (int64, error) {
	text, err := client.Do(ctx, client.B().Get().Key(counter).Build()).ToString()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// TestLostUpdates shows why a holder advances before it reads: a check on write alone loses nearly
// as many updates as no check. The two protocols that lose updates prove that the test can fail.
func TestLostUpdates(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	g, admin := guardOn(t, open(t, server.URL), nil), plain(t, server)
	readAddWrite := func(counter string, write func(context.Context, claim, string) error) protocol {
		return func(ctx context.Context, c claim, pause func()) error {
			n, err := read(ctx, admin, counter)
			if err != nil {
				return err
			}
			pause()
			return write(ctx, c, strconv.FormatInt(n+1, 10))
		}
	}
	guarded := func(counter string) protocol {
		return readAddWrite(counter, func(ctx context.Context, c claim, value string) error {
			return g.Set(ctx, counter, c, value, 0)
		})
	}
	for _, p := range []struct {
		name  string
		add   protocol
		loses bool
	}{
		{"unfenced", readAddWrite("unfenced", func(ctx context.Context, _ claim, value string) error {
			return admin.Do(ctx, admin.B().Set().Key("unfenced").Value(value).Build()).Error()
		}), true},
		{"check on write", guarded("check on write"), true},
		{"advance before read", func(ctx context.Context, c claim, pause func()) error {
			if err := g.Advance(ctx, "advance before read", c); err != nil {
				return err
			}
			return guarded("advance before read")(ctx, c, pause)
		}, false},
	} {
		t.Run(p.name, func(t *testing.T) {
			do(t, admin, "SET", p.name, "0")
			acked, lost := updates(t, admin, p.name, p.add)
			if p.loses && lost < 1 {
				t.Errorf("no update of %d was lost: the lock is not bad enough for this test to show anything", acked)
			}
			if !p.loses && lost != 0 {
				t.Errorf("%d of %d acknowledged updates are lost", lost, acked)
			}
			if acked < 50 {
				t.Errorf("only %d updates: too few to show anything", acked)
			}
		})
	}
}
