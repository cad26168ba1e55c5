package pgtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// TestPromotionThatLosesGrants checks that tokens grow although a promoted standby lacks the last
// grants, so that leases are lost. INVARIANT I2.
func TestPromotionThatLosesGrants(t *testing.T) {
	t.Parallel()
	primary := testsvc.Postgres(t)
	promotions, lost := soak.Count(1, 10), 0
	least := time.Duration(1<<63 - 1)
	for promotion := range promotions {
		standby := primary.Standby()
		engine := open(t, primary, standby)
		for i := range names {
			drivertest.Cycle(t, engine, fmt.Sprint("before/", promotion, "/", i))
		}
		standby.Detach(primary)
		tokens := map[string]uint64{}
		for i := range names {
			for _, name := range []string{fmt.Sprint("before/", promotion, "/", i), fmt.Sprint("new/", promotion, "/", i)} {
				tokens[name] = drivertest.Granted(t, engine, drivertest.Request(name, time.Minute))
			}
		}
		primary.Kill()
		standby.Promote()
		for name, token := range tokens {
			var reply driver.AcquireReply
			eventually(t, "the new primary grants", func() (ok bool) {
				var err error
				reply, err = engine.Acquire(t.Context(), drivertest.Request(name, time.Minute))
				return err == nil && reply.Outcome == driver.Granted
			})
			if lost++; reply.Token <= token {
				t.Errorf("%s: token %d after %d, which was lost", name, reply.Token, token)
			}
			least = min(least, time.Duration(reply.Token-token)*time.Microsecond)
		}
		primary = standby
	}
	report.Row(t, "promotion of a standby that lacks the last grants", "tokens grow",
		"%d promotions, %d leases lost; the next token is at least %s above the lost one", promotions, lost, least.Round(time.Millisecond))
}

// follow starts a standby and makes the primary wait for it.
func follow(t *testing.T, primary *testsvc.Database) (standby *testsvc.Database) {
	t.Helper()
	standby = primary.Standby()
	primary.Configure("synchronous_standby_names = 'standby'")
	synchronous(t, primary)
	return standby
}

func synchronous(t *testing.T, primary *testsvc.Database) {
	t.Helper()
	eventually(t, "the primary waits for its standby", func() bool {
		return primary.Query("SELECT sync_state FROM pg_stat_replication") == "sync"
	})
}

// TestSynchronousStandby checks a synchronous standby that goes down and comes back, and is then
// promoted when the primary crashes under 64 clients. INVARIANT I1, I3.
func TestSynchronousStandby(t *testing.T) {
	t.Parallel()
	primary := testsvc.Postgres(t)
	standby := follow(t, primary)
	standbyGone(t, primary, standby)
	promotions, kept := soak.Count(2, 50), 0
	for i := range promotions {
		if i > 0 {
			standby = follow(t, primary)
		}
		kept += promoteUnderLoad(t, primary, standby)
		primary = standby
	}
	report.Row(t, "promotion of a synchronous standby after a crash under 64 clients", "it has each lease that was answered",
		"%d promotions, %d of %d leases are there", promotions, kept, kept)
}

// standbyGone checks requests while the standby is down. Grants and extends wait, holders learn of
// their loss by their deadline, releases succeed, and a cancelled wait leaves the outcome unknown.
func standbyGone(t *testing.T, primary, standby *testsvc.Database) {
	t.Helper()
	engine := open(t, primary)
	client := newClient(t, engine, 4*time.Second)
	kept, given := acquire(t, client, "kept"), acquire(t, client, "given back")
	extended := drivertest.Request("extended", time.Minute)
	drivertest.Granted(t, engine, extended)
	standby.Kill()
	began := time.Now()
	if err := given.Release(t.Context()); err != nil || time.Since(began) > time.Second {
		t.Errorf("the release took %s: %v", time.Since(began), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	wantUnknown(t, "an acquire whose context ends", try(ctx, engine, "late"))
	for what, request := range map[string]func() error{
		"an acquire": func() error { return try(t.Context(), engine, "cancelled") },
		"an extend": func() error {
			return engine.Extend(t.Context(), []driver.ExtendRequest{{Name: "extended", LeaseID: extended.LeaseID, TTL: time.Hour}})[0]
		},
	} {
		answer := make(chan error, 1)
		go func() { answer <- request() }()
		eventually(t, what+" waits for the standby, and its wait is cancelled", func() bool {
			primary.Query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query ~ '^SELECT'")
			return len(answer) > 0
		})
		wantUnknown(t, what, <-answer)
	}
	<-kept.Context().Done()
	late := time.Since(kept.Deadline())
	if late > 200*time.Millisecond {
		t.Errorf("the holder was notified %s after its deadline", late)
	}
	standby.Start()
	synchronous(t, primary)
	eventually(t, "grants go on", func() bool { return try(t.Context(), engine, "again") == nil })
	report.Row(t, "a synchronous standby is away", "grants and extends wait, holders are notified by their deadline, releases go on, a cancelled wait is an unknown outcome",
		"notified %s after the deadline", late.Round(time.Millisecond))
}

func acquire(t *testing.T, client *holdfast.Client, name string) *holdfast.Lease {
	t.Helper()
	lease, err := client.TryAcquire(t.Context(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// try sends an acquire with a new lease ID.
func try(ctx context.Context, engine driver.Engine, name string) error {
	_, err := engine.Acquire(ctx, drivertest.Request(name, time.Minute))
	return err
}

func wantUnknown(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || driver.Definite(err) {
		t.Errorf("%s: got %v, want an unknown outcome", what, err)
	}
}

// promoteUnderLoad lets the primary crash while clients acquire locks, checks that the promoted
// standby has every granted lease, and returns their number.
func promoteUnderLoad(t *testing.T, primary, standby *testsvc.Database) int {
	t.Helper()
	engine := open(t, primary)
	var mu sync.Mutex
	var answered []driver.AcquireRequest
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				req := drivertest.Request(fmt.Sprintf("%s/%d/%d", standby.Addr, i, n), time.Hour)
				reply, err := engine.Acquire(ctx, req)
				if err != nil || reply.Outcome != driver.Granted {
					continue
				}
				mu.Lock()
				answered = append(answered, req)
				mu.Unlock()
			}
		})
	}
	eventually(t, "everybody works", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(answered) > 4*workers
	})
	primary.Kill()
	stop()
	all.Wait()
	standby.Promote()
	after := open(t, standby)
	for _, req := range answered {
		lock, err := after.Inspect(t.Context(), req.Name)
		if err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID != req.LeaseID {
			t.Errorf("%s: after the promotion its holders are %v, %v", req.Name, lock.Holders, err)
		}
	}
	return len(answered)
}
