package mem

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func proofOf(i int) driver.Proof { return driver.Proof(fmt.Sprintf("%064x", i)) }

func digestOf(i int) driver.Digest { return proofOf(i).Digest() }

// deposited stores a token with one hour of Memory and returns the request.
func deposited(t *testing.T, e *Engine, i int, ttl time.Duration) driver.DepositRequest {
	t.Helper()
	req := driver.DepositRequest{
		Digest: digestOf(i), By: lockinfo.NewLeaseID(), Payload: []byte("payload"), TTL: ttl, Memory: time.Hour,
	}
	if err := e.Deposit(t.Context(), req); err != nil {
		t.Fatalf("Deposit: %v", err)
	}
	return req
}

func payloads(e *Engine) (n int) {
	for _, d := range e.deposits {
		if d.payload != nil {
			n++
		}
	}
	return n
}

// wantStored checks the numbers of tokens and payloads in the store, and that the heap contains
// each token once, at its index.
func wantStored(t *testing.T, e *Engine, tokens, withPayload int) {
	t.Helper()
	if len(e.deposits) != tokens || payloads(e) != withPayload {
		t.Errorf("the store has %d tokens, %d with their payload; want %d and %d", len(e.deposits), payloads(e), tokens, withPayload)
	}
	if len(e.prunable) != len(e.deposits) {
		t.Errorf("%d tokens can be pruned of %d", len(e.prunable), len(e.deposits))
	}
	for i, d := range e.prunable {
		if d.index != i || e.deposits[d.digest] != d {
			t.Errorf("token %s is not where the heap has it", d.digest)
		}
		if parent := e.prunable[max(i-1, 0)/2]; d.due().Before(parent.due()) {
			t.Errorf("token %s is due before its parent in the heap", d.digest)
		}
	}
}

func wantPrune(t *testing.T, e *Engine, limit, deleted int, more bool) {
	t.Helper()
	if n, m, err := e.Prune(t.Context(), limit); n != deleted || m != more || err != nil {
		t.Errorf("Prune(%d) = %d, %t, %v; want %d, %t", limit, n, m, err, deleted, more)
	}
}

// TestPruneForgetsInTime checks when data is deleted: a payload with the first Prune after its last
// possible redemption, a revoked payload at once, and a token after its Memory.
func TestPruneForgetsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(nil)
		deposited(t, e, 1, time.Minute) // expires
		deposited(t, e, 2, time.Minute) // is redeemed at once
		deposited(t, e, 3, time.Minute) // is redeemed at the very end
		deposited(t, e, 4, time.Minute) // is revoked
		redeem := func(i int) {
			t.Helper()
			reply, err := e.Redeem(t.Context(), driver.RedeemRequest{Proof: proofOf(i), By: lockinfo.NewLeaseID()})
			if err != nil || !reply.Granted {
				t.Errorf("Redeem = %+v, %v", reply, err)
			}
		}
		at := func(tokens, withPayload int) {
			t.Helper()
			wantPrune(t, e, 10, 4-tokens, false)
			wantStored(t, e, tokens, withPayload)
		}
		start := time.Now()
		until := func(since time.Duration) { time.Sleep(time.Until(start.Add(since))) }
		redeem(2)
		if reply, err := e.Revoke(t.Context(), digestOf(4)); err != nil || reply.State != driver.Fresh {
			t.Errorf("Revoke = %+v, %v", reply, err)
		}
		wantStored(t, e, 4, 3) // a revoked payload does not wait for Prune
		until(driver.RedeemGrace - 1)
		at(4, 3)
		until(driver.RedeemGrace)
		at(4, 2)
		until(time.Minute - 1)
		redeem(3)
		at(4, 2)
		until(time.Minute)
		at(4, 1)
		until(time.Minute + driver.RedeemGrace - 2)
		at(4, 1)
		until(time.Minute + driver.RedeemGrace - 1)
		at(4, 0)
		until(time.Hour + time.Minute - 1)
		at(4, 0)
		until(time.Hour + time.Minute)
		at(0, 0)
	})
}

// TestPruneIsBounded checks that Prune deletes at most its limit, and reports whether there may be
// more.
func TestPruneIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(nil)
		for i := range 25 {
			deposited(t, e, i, time.Minute)
		}
		for i := range 100 {
			deposited(t, e, 1000+i, 100*time.Hour)
		}
		wantPrune(t, e, 10, 0, false)
		time.Sleep(time.Minute)
		for _, left := range []int{115, 105, 100, 100} {
			wantPrune(t, e, 10, 0, left > 100)
			wantStored(t, e, 125, left)
		}
		time.Sleep(time.Hour)
		for _, step := range []struct {
			deleted, left int
			more          bool
		}{{10, 115, true}, {10, 105, true}, {5, 100, false}, {0, 100, false}} {
			wantPrune(t, e, 10, step.deleted, step.more)
			wantStored(t, e, step.left, 100)
		}
		// With exactly as many tokens as the limit there are no more.
		time.Sleep(100 * time.Hour)
		wantPrune(t, e, 100, 100, false)
		wantStored(t, e, 0, 0)
	})
}

// TestPruneAfterEveryHistory checks the heap after random operations on the tokens.
func TestPruneAfterEveryHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(nil)
		for i := range 500 {
			deposited(t, e, i, time.Duration(1+rand.IntN(100))*time.Second)
			if victim := proofOf(rand.IntN(i + 1)); rand.IntN(2) == 0 {
				e.Redeem(t.Context(), driver.RedeemRequest{Proof: victim, By: lockinfo.NewLeaseID()})
			} else {
				e.Revoke(t.Context(), victim.Digest())
			}
			if rand.IntN(5) == 0 {
				e.Prune(t.Context(), 3)
			}
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
			wantStored(t, e, len(e.deposits), payloads(e))
		}
		time.Sleep(2 * time.Minute)
		wantPrune(t, e, driver.MaxPrune, 0, false)
		wantStored(t, e, 500, 0)
		time.Sleep(2 * time.Hour)
		wantPrune(t, e, driver.MaxPrune, 500, false)
		wantStored(t, e, 0, 0)
	})
}

// TestForgottenDigestIsFree checks that an expired digest can be used again before it is pruned,
// and that it is stored once.
func TestForgottenDigestIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(nil)
		deposited(t, e, 1, time.Minute)
		time.Sleep(time.Minute + time.Hour - 1)
		err := e.Deposit(t.Context(), driver.DepositRequest{Digest: digestOf(1), By: lockinfo.NewLeaseID(), TTL: time.Minute, Memory: time.Hour})
		if !errors.Is(err, driver.ErrKindMismatch) {
			t.Errorf("Deposit under a digest in use = %v, want ErrKindMismatch", err)
		}
		time.Sleep(time.Nanosecond)
		deposited(t, e, 1, time.Minute)
		wantStored(t, e, 1, 1)
		wantPrune(t, e, 10, 0, false)
	})
}

// TestVaultKeepsItsOwn checks that requests for unknown tokens store nothing, and that the store
// shares no slice with its callers.
func TestVaultKeepsItsOwn(t *testing.T) {
	e := New(nil)
	for i := range 100 {
		e.Redeem(t.Context(), driver.RedeemRequest{Proof: proofOf(i), By: lockinfo.NewLeaseID()})
		e.Peek(t.Context(), proofOf(i))
		e.Revoke(t.Context(), digestOf(i))
	}
	wantStored(t, e, 0, 0)

	req := deposited(t, e, 1, time.Minute)
	clear(req.Payload)
	redeem := driver.RedeemRequest{Proof: proofOf(1), By: lockinfo.NewLeaseID()}
	peeked, _ := e.Peek(t.Context(), proofOf(1))
	read := []string{string(peeked.Payload)}
	clear(peeked.Payload)
	for range 2 {
		reply, _ := e.Redeem(t.Context(), redeem)
		read = append(read, string(reply.Payload))
		clear(reply.Payload)
	}
	if got := strings.Join(slices.Compact(read), " "); got != "payload" {
		t.Errorf("payloads %q, want each to be whole", read)
	}
	if locks, err := e.used(t.Context(), ""); len(locks) != 0 || err != nil {
		t.Errorf("tokens are listed as locks: %v, %v", locks, err)
	}
}
