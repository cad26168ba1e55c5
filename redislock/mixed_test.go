package redislock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A ledger records which requests work under which lock now.
type ledger struct {
	mu      sync.Mutex
	working map[string][]driver.AcquireRequest // by name
	granted int
	last    map[string]uint64 // the greatest token of an exclusive lease
}

func (l *ledger) begin(t *testing.T, req driver.AcquireRequest, token uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.working[req.Name] = append(l.working[req.Name], req)
	if l.granted++; !compatible(l.working[req.Name]) {
		t.Errorf("these work together: %+v", l.working[req.Name])
	}
	if req.Mode == lockinfo.Exclusive {
		if token <= l.last[req.Name] {
			t.Errorf("token %d after %d", token, l.last[req.Name])
		}
		l.last[req.Name] = token
	}
}

func (l *ledger) end(req driver.AcquireRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.working[req.Name] {
		if other.LeaseID == req.LeaseID {
			l.working[req.Name] = append(l.working[req.Name][:i:i], l.working[req.Name][i+1:]...)
			return
		}
	}
}

// Longer than a machine may stall.
const longTTL, longPlace = 30 * time.Second, 15 * time.Second

// TestMixedRun runs many clients of several engines that acquire, share, wait, give up and die. No
// two incompatible leases work at a time, every client gets a turn, and nothing remains in the end.
func TestMixedRun(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	l := &ledger{working: map[string][]driver.AcquireRequest{}, last: map[string]uint64{}}
	var wg sync.WaitGroup
	const engines, clients, turns = 3, 8, 25
	for range engines {
		e := open(t, server.URL)
		for c := range clients {
			wg.Go(func() {
				for range turns {
					takeTurn(t, e, l, c)
				}
			})
		}
	}
	wg.Wait()
	e := open(t, server.URL)
	if l.granted < engines*clients*turns/2 {
		t.Errorf("%d grants", l.granted)
	}
	drivertest.Eventually(t, "what died is noticed by who comes next", func() bool {
		for _, name := range []string{"rw0", "rw1", "sem"} {
			wantIs(t, "refresh of no place", refresh(t, e, drivertest.Request(name, longTTL)).Err, driver.ErrLost)
		}
		return onlyTokensLeft(t, admin)
	})
}

// takeTurn waits for a lock, works, and ends in one of several ways.
func takeTurn(t *testing.T, e *Engine, l *ledger, client int) {
	req := drivertest.Request(fmt.Sprint("rw", client%2), longTTL)
	switch client % 4 {
	case 0:
		req = permits("sem", 1+rand.IntN(3), longTTL)
	case 1:
		req.Mode = lockinfo.Shared
	}
	req.Queue, req.WaiterTTL = true, longPlace
	end := rand.IntN(12)
	patience := drivertest.Patience
	if end == 0 { // gives up
		patience = time.Duration(rand.IntN(10)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	token := await(ctx, t, e, req)
	if token == 0 {
		if end != 0 {
			t.Errorf("%s %s: no turn within %s", req.Name, req.Mode, patience)
		}
		_ = e.Release(t.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID, Cancel: true})
		return
	}
	l.begin(t, req, token)
	time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
	l.end(req)
	release := driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID}
	switch end {
	case 1:
		release.KeepFor = 20 * time.Millisecond
	case 2:
		if req.Mode == lockinfo.Exclusive {
			if err := e.Downgrade(t.Context(), driver.DowngradeRequest{Name: req.Name, LeaseID: req.LeaseID}); err != nil {
				t.Errorf("downgrade: %v", err)
			}
		}
	}
	if err := e.Release(t.Context(), release); err != nil {
		t.Errorf("release: %v", err)
	}
	if end == 3 { // the place of a dead client
		req.LeaseID, req.WaiterTTL = lockinfo.NewLeaseID(), 20*time.Millisecond
		req.TTL = req.WaiterTTL
		if _, err := e.Acquire(t.Context(), req); err != nil {
			t.Errorf("acquire: %v", err)
		}
	}
}

// await returns the token, or 0 if ctx ended first.
func await(ctx context.Context, t *testing.T, e *Engine, req driver.AcquireRequest) uint64 {
	w := e.Watch(req.LeaseID)
	defer w.Stop()
	reply, err := e.Acquire(t.Context(), req)
	for {
		switch {
		case err != nil:
			t.Errorf("%s: %v", req.Name, err)
			return 0
		case reply.Outcome == driver.Granted:
			if err := extend(t, e, req, req.TTL); err != nil {
				t.Errorf("confirm: %v", err)
			}
			return reply.Token
		}
		select {
		case <-w.C():
		case <-time.After(min(reply.ExpiresIn+time.Millisecond, 40*time.Millisecond)):
		case <-ctx.Done():
			return 0
		}
		r := refresh(t, e, req)
		reply, err = r.AcquireReply, r.Err
	}
}
