package eventdoor_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// take acquires a lease that no client renews.
func (s *stage) take(engine driver.Engine, name string, ttl time.Duration) driver.AcquireRequest {
	s.Helper()
	req := drivertest.Request(name, ttl)
	drivertest.Granted(s.T, engine, req)
	synctest.Wait()
	return req
}

// expired returns how many leases are counted as expired.
func expired(v wire.Stats) (n int) {
	for _, b := range v.Buckets {
		n += b.Expired
	}
	return n
}

// TestDeadHolderIsFound checks that the lease of a dead holder is counted as a loss within its TTL
// and 15 s, at the time of its end, though no client sends a request for the name.
func TestDeadHolderIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := quiet()
		dead := drivertest.Request("before", 40*time.Second)
		drivertest.Granted(t, engine, dead)
		s := open(t, engine)
		v := s.read("", "")
		began := time.Now()
		s.take(engine, "job", 30*time.Second)
		renewed := s.take(engine, "renewed", 30*time.Second)
		for range 20 { // then its holder dies, too
			time.Sleep(5 * time.Second)
			if err := engine.Extend(t.Context(), []driver.ExtendRequest{{Name: "renewed", LeaseID: renewed.LeaseID, TTL: 30 * time.Second}})[0]; err != nil {
				t.Fatal(err)
			}
			if since := time.Since(began); since == 55*time.Second && expired(s.stats()) != 2 {
				t.Errorf("after %s %d leases are counted as expired", since, expired(s.stats()))
			}
		}
		time.Sleep(45 * time.Second)
		got := s.stats()
		if expired(got) != 3 || got.LossesAtLeast || len(got.Losses) != 3 {
			t.Fatalf("%+v, want three leases that have expired", got)
		}
		for i, want := range []struct {
			name      string
			ago, held time.Duration
		}{
			{"job", 115 * time.Second, 30 * time.Second},
			{"before", 105 * time.Second, 40 * time.Second},
			{"renewed", 15 * time.Second, 130 * time.Second},
		} {
			l := got.Losses[i]
			if l.Name != want.name || *l.AgoMS != want.ago.Milliseconds() || *l.HeldMS != want.held.Milliseconds() {
				t.Errorf("%s: %d ms ago, after %d ms; want %+v", l.Name, *l.AgoMS, *l.HeldMS, want)
			}
		}
		v.want("acquired job", "acquired renewed", "expired job", "expired before", "expired renewed")
	})
}

// A partition is between a server and its store, which may lose its data meanwhile.
type partition struct {
	driver.Forward
	mu    sync.Mutex
	store driver.Engine // with history
	cut   bool
	told  []func(lockinfo.HistoryEvent) // the listeners
}

func newPartition() *partition {
	p := &partition{Forward: driver.Forward{Engine: mem.New(&mem.Options{History: true}), Without: driver.Capabilities{OneTime: true}}}
	p.store = p.Engine
	return p
}

func (p *partition) now() (store driver.Engine, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		err = driver.ErrUnavailable
	}
	return p.store, err
}

func (p *partition) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	store, err := p.now()
	if err != nil {
		return lockinfo.LockState{}, err
	}
	return store.Inspect(ctx, name)
}

func (p *partition) History(ctx context.Context, name string) ([]lockinfo.HistoryEvent, error) {
	store, err := p.now()
	if err != nil {
		return nil, err
	}
	return store.(driver.Historian).History(ctx, name)
}

func (p *partition) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	store, err := p.now()
	if err != nil {
		return func(yield func(lockinfo.LockState, error) bool) { yield(lockinfo.LockState{}, err) }
	}
	return store.(driver.Lister).List(ctx, prefix)
}

func (p *partition) OnEvent(told func(lockinfo.HistoryEvent)) (stop func()) {
	p.mu.Lock()
	p.told = append(p.told, told)
	p.mu.Unlock()
	return p.hear(told)
}

// hear makes a listener receive the events of the present store.
func (p *partition) hear(told func(lockinfo.HistoryEvent)) (stop func()) {
	store, _ := p.now()
	return store.(driver.Historian).OnEvent(func(e lockinfo.HistoryEvent) {
		if _, err := p.now(); err == nil {
			told(e)
		}
	})
}

// gap sends a gap to all listeners.
func (p *partition) gap() {
	for _, told := range p.told {
		told(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap})
	}
}

// outage disconnects the server during meanwhile, and then connects it to the returned store.
func (p *partition) outage(meanwhile func() driver.Engine) {
	p.gap()
	p.mu.Lock()
	p.cut = true
	p.mu.Unlock()
	store := meanwhile()
	p.mu.Lock()
	lost := store != p.store
	p.cut, p.store = false, store
	p.mu.Unlock()
	if lost {
		for _, told := range p.told {
			p.hear(told)
		}
		return
	}
	p.gap()
}

// TestLossesOfAnOutage checks that losses while the server receives no events are counted
// afterwards: expiries that another client has noticed, and leases that the store has lost. The
// count is marked as a minimum, because there may be more losses, as long as the outage counts.
func TestLossesOfAnOutage(t *testing.T) {
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPartition()
			s := open(t, p)
			kept := p.store
			for _, name := range []string{"a", "b", "c"} {
				s.take(kept, name, 30*time.Second)
			}
			back := s.take(kept, "back", 10*time.Minute)
			unseen := "unseen"
			p.outage(func() driver.Engine {
				time.Sleep(40 * time.Second)
				if lost {
					return mem.New(&mem.Options{History: true})
				}
				for _, name := range []string{"a", "b"} { // another client notices the expiry, and the store writes its event
					s.take(kept, name, 10*time.Minute)
				}
				drivertest.Release(t, kept, back)
				s.take(kept, unseen, 30*time.Second)
				time.Sleep(31 * time.Second)
				drivertest.Cycle(t, kept, unseen)
				synctest.Wait() // the server receives none of these events
				return kept
			})
			time.Sleep(5 * time.Second)
			got, want := s.stats(), 3
			if lost {
				want = 4
			}
			if expired(got) != want || !got.LossesAtLeast {
				t.Errorf("the store has lost its data: %v: %d leases are counted, at least: %v; want %d at least", lost, expired(got), got.LossesAtLeast, want)
			}
			if released := got.Buckets[len(got.Buckets)-1]; !lost && released.Gap {
				t.Errorf("the latest bucket is %+v", released)
			}
			time.Sleep(20 * time.Minute)
			if got := s.stats(); got.LossesAtLeast {
				t.Error("twenty minutes later there may still be losses of which nobody knows")
			}
		})
	}
}
