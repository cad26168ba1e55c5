package redislock

import (
	"maps"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// proof is the proof of a token that no other test uses.
const proof = driver.Proof("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")

var digest = proof.Digest()

// deposit stores a token, and returns the request.
func deposit(t testing.TB, e *Engine, ttl, memory time.Duration) driver.DepositRequest {
	t.Helper()
	req := driver.DepositRequest{Digest: digest, By: lockinfo.NewLeaseID(), Payload: []byte("payload"), TTL: ttl, Memory: memory}
	if err := e.Deposit(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return req
}

// redeem redeems the token, and checks the state and, if granted, the payload.
func redeem(t testing.TB, e *Engine, by lockinfo.LeaseID, want driver.VaultState, granted bool) {
	t.Helper()
	reply, err := e.Redeem(t.Context(), driver.RedeemRequest{Proof: proof, By: by})
	if err != nil || reply.State != want || reply.Granted != granted || granted != (string(reply.Payload) == "payload") {
		t.Fatalf("redeem: %s, granted %t, %v; want %s, %t", reply.State, reply.Granted, err, want, granted)
	}
}

// lasts fails t unless the rest of the key's life is between low and high.
func lasts(t testing.TB, admin rueidis.Client, key string, low, high time.Duration) {
	t.Helper()
	if left := time.Duration(number(t, admin, "PTTL", key)) * time.Millisecond; left < low || left > high {
		t.Errorf("%s lasts %s, want %s to %s", key, left, low, high)
	}
}

// TestVaultKeys checks that a token has two keys, each of which expires, and that the payload goes
// as soon as no redeem can get it. INVARIANT I11.
func TestVaultKeys(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL+"?prefix=p:"), plain(t, server)
	keys := keyspace{"p:"}.vault(digest)
	token, payload := keys[0], keys[1]
	if want := "p:holdfast:{" + string(digest) + "}:onetime:" + string(digest); token != want {
		t.Errorf("the token's key is %q, want %q", token, want)
	}
	deposit(t, e, time.Hour, 24*time.Hour)
	if n := number(t, admin, "DBSIZE"); n != 2 {
		t.Errorf("a token has %d keys", n)
	}
	lasts(t, admin, payload, 59*time.Minute, time.Hour)
	lasts(t, admin, token, 25*time.Hour-time.Minute, 25*time.Hour)
	by := lockinfo.NewLeaseID()
	for range 2 {
		redeem(t, e, by, driver.Redeemed, true)
		redeem(t, e, lockinfo.NewLeaseID(), driver.Redeemed, false)
		lasts(t, admin, payload, driver.RedeemGrace-20*time.Second, driver.RedeemGrace)
		lasts(t, admin, token, 25*time.Hour-time.Minute, 25*time.Hour)
	}
	// A repeat does not lengthen RedeemGrace.
	do(t, admin, "PEXPIRE", payload, "9000")
	redeem(t, e, by, driver.Redeemed, true)
	lasts(t, admin, payload, 0, 9*time.Second)
	do(t, admin, "PEXPIRE", payload, "0") // RedeemGrace has ended
	redeem(t, e, by, driver.Redeemed, false)

	do(t, admin, "FLUSHALL")
	deposit(t, e, time.Hour, 24*time.Hour)
	if reply, err := e.Revoke(t.Context(), digest); err != nil || reply.State != driver.Fresh {
		t.Errorf("revoke: %+v, %v", reply, err)
	}
	if n := number(t, admin, "EXISTS", payload); n != 0 {
		t.Error("the payload outlives the revoke")
	}
	lasts(t, admin, token, 25*time.Hour-time.Minute, 25*time.Hour)

	// The payload of a redeemed token does not outlive its state.
	do(t, admin, "FLUSHALL")
	deposit(t, e, 10*time.Second, 10*time.Second)
	redeem(t, e, by, driver.Redeemed, true)
	lasts(t, admin, payload, time.Second, 20*time.Second)
	if p, k := number(t, admin, "PEXPIRETIME", payload), number(t, admin, "PEXPIRETIME", token); p > k+1 {
		t.Errorf("the payload lasts %d ms longer than its token", p-k)
	}
}

// TestVaultGoesAway checks that no key remains after RedeemGrace and Memory.
func TestVaultGoesAway(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	deposit(t, e, 300*time.Millisecond, 300*time.Millisecond)
	redeem(t, e, lockinfo.NewLeaseID(), driver.Redeemed, true)
	time.Sleep(time.Second)
	if keys := dump(t, admin); len(keys) != 0 {
		t.Errorf("there still are %v", keys)
	}
	redeem(t, e, lockinfo.NewLeaseID(), driver.Unknown, false)
}

// TestVaultExpiredStaysExpired checks that the payload's end decides: a clock that goes back does
// not revive a token.
func TestVaultExpiredStaysExpired(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	req := deposit(t, e, 10*time.Millisecond, time.Minute)
	token := keyspace{}.vault(digest)[0]
	time.Sleep(50 * time.Millisecond)
	redeem(t, e, lockinfo.NewLeaseID(), driver.Expired, false)
	do(t, admin, "PEXPIRE", token, "3600000") // as if the clock had gone back
	before := dump(t, admin)
	if err := e.Deposit(t.Context(), req); err != nil {
		t.Errorf("a repeat: %v", err)
	}
	redeem(t, e, lockinfo.NewLeaseID(), driver.Expired, false)
	if reply, err := e.Revoke(t.Context(), digest); err != nil || reply.State != driver.Expired {
		t.Errorf("revoke: %+v, %v", reply, err)
	}
	if after := dump(t, admin); !maps.Equal(before, after) {
		t.Errorf("the store was %v and is %v", before, after)
	}
}

// TestVaultOnFullServer checks that a token is stored whole or not at all, and that existing tokens
// can be redeemed and revoked.
func TestVaultOnFullServer(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	by := lockinfo.NewLeaseID()
	for _, end := range []func(){
		func() { redeem(t, e, by, driver.Redeemed, true); redeem(t, e, by, driver.Redeemed, true) },
		func() {
			if reply, err := e.Revoke(t.Context(), digest); err != nil || reply.State != driver.Fresh {
				t.Errorf("revoke: %+v, %v", reply, err)
			}
			redeem(t, e, by, driver.Revoked, false)
		},
	} {
		do(t, admin, "CONFIG SET maxmemory 0")
		do(t, admin, "FLUSHALL")
		deposit(t, e, time.Minute, time.Minute)
		do(t, admin, "CONFIG SET maxmemory 1")
		before := dump(t, admin)
		err := e.Deposit(t.Context(), driver.DepositRequest{
			Digest: digest[1:] + "0", By: by, Payload: []byte("other"), TTL: time.Minute, Memory: time.Minute,
		})
		wantIs(t, "deposit", err, driver.ErrUnavailable)
		if after := dump(t, admin); !maps.Equal(before, after) {
			t.Errorf("the store was %v and is %v", before, after)
		}
		end()
	}
}

// TestForeignVault checks that values of another program under the keys of a token are an error,
// and not changed.
func TestForeignVault(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	keys := keyspace{}.vault(digest)
	for what, spoil := range map[string]func(){
		"text":          func() { do(t, admin, "SET", keys[0], "fresh and fruity") },
		"nothing":       func() { do(t, admin, "SET", keys[0], "") },
		"another state": func() { do(t, admin, "SET", keys[0], "stale "+string(digest[:32])) },
		"a list":        func() { do(t, admin, "LPUSH", keys[0], "x") },
		"a list beside": func() {
			deposit(t, e, time.Minute, time.Minute)
			do(t, admin, "DEL", keys[1])
			do(t, admin, "LPUSH", keys[1], "x")
		},
	} {
		do(t, admin, "FLUSHALL")
		spoil()
		before := dump(t, admin)
		for op, call := range map[string]func() error{
			"deposit": func() error {
				return e.Deposit(t.Context(), driver.DepositRequest{Digest: digest, By: lockinfo.NewLeaseID(), TTL: time.Minute, Memory: time.Minute})
			},
			"redeem": func() error {
				_, err := e.Redeem(t.Context(), driver.RedeemRequest{Proof: proof, By: lockinfo.NewLeaseID()})
				return err
			},
			"peek":   func() error { _, err := e.Peek(t.Context(), proof); return err },
			"revoke": func() error { _, err := e.Revoke(t.Context(), digest); return err },
		} {
			wantIs(t, op+" over "+what, call(), driver.ErrKindMismatch)
		}
		if after := dump(t, admin); !maps.Equal(before, after) {
			t.Errorf("%s: the store was %v and is %v", what, before, after)
		}
	}
}

// TestVaultCost counts the commands that reach the server.
func TestVaultCost(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	once := func() {
		deposit(t, e, time.Minute, time.Minute)
		redeem(t, e, lockinfo.NewLeaseID(), driver.Redeemed, true)
	}
	once() // from now on the server knows the scripts
	do(t, admin, "FLUSHALL")
	do(t, admin, "CONFIG RESETSTAT")
	once()
	got := commandStats(t, admin)
	delete(got, "config|resetstat")
	delete(got, "ping") // idle connections send it once a second
	want := map[string]int64{"evalsha": 2, "get": 3, "set": 3, "pexpire": 1, "pttl": 1}
	if !maps.Equal(got, want) {
		t.Errorf("deposit and redeem: commands %v, want %v", got, want)
	}
}
