package enginetest

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A deposited is a one-time token that the store has taken.
type deposited struct {
	driver.DepositRequest
	sent     time.Time // before the request was sent
	answered time.Time
}

// shortest is the shortest TTL and Memory that the contract allows. A token
// with it is over, or forgotten, one unit later.
const shortest = 10 * time.Millisecond

func digestOf(secret string) driver.Digest {
	sum := sha256.Sum256([]byte(secret))
	return driver.Digest(hex.EncodeToString(sum[:]))
}

func (t *T) vault() driver.Vault { return t.Features.Vault }

// askDeposit returns a request with a By of its own, for a token that is
// remembered for long.
func (t *T) askDeposit(secret string, ttl time.Duration) driver.DepositRequest {
	return driver.DepositRequest{
		Digest: digestOf(secret), By: driver.NewLeaseID(), Payload: []byte("payload of " + secret), TTL: ttl, Memory: t.units(400),
	}
}

// mustDeposit stores a token, which must succeed.
func (t *T) mustDeposit(req driver.DepositRequest) deposited {
	t.Helper()
	sent := time.Now()
	if err := t.vault().Deposit(t.Context(), req); err != nil {
		t.Fatalf("Deposit: %v", err)
	}
	return deposited{DepositRequest: req, sent: sent, answered: time.Now()}
}

// store stores a token that is remembered for long.
func (t *T) store(secret string, ttl time.Duration) deposited {
	t.Helper()
	return t.mustDeposit(t.askDeposit(secret, ttl))
}

func (t *T) peek(digest driver.Digest) driver.VaultReply {
	t.Helper()
	reply, err := t.vault().Peek(t.Context(), digest)
	if err != nil {
		t.Fatalf("Peek: %v", err)
	}
	return reply
}

func (t *T) redeem(digest driver.Digest, by driver.LeaseID) driver.VaultReply {
	t.Helper()
	reply, err := t.vault().Redeem(t.Context(), driver.RedeemRequest{Digest: digest, By: by})
	if err != nil {
		t.Fatalf("Redeem: %v", err)
	}
	return reply
}

func (t *T) revoke(digest driver.Digest) driver.VaultReply {
	t.Helper()
	reply, err := t.vault().Revoke(t.Context(), digest)
	if err != nil {
		t.Fatalf("Revoke: %v", err)
	}
	return reply
}

// isState fails the run unless Peek answers with this state.
func (t *T) isState(digest driver.Digest, want driver.VaultState) {
	t.Helper()
	if got := t.peek(digest).State; got != want {
		t.Fatalf("Peek: the token is %s, want %s", got, want)
	}
}

// fresh fails the run unless the token can be redeemed for its payload, and
// returns for how long.
func (t *T) fresh(d deposited) time.Duration {
	t.Helper()
	reply := t.peek(d.Digest)
	if reply.State != driver.Fresh {
		t.Fatalf("Peek: the token is %s, want %s", reply.State, driver.Fresh)
	}
	if reply.ExpiresIn <= 0 {
		t.Errorf("Peek: ExpiresIn = %s of a fresh token, want more than 0", reply.ExpiresIn)
	}
	t.sameBytes("Peek", reply.Payload, string(d.Payload))
	return reply.ExpiresIn
}

// handedOut redeems a token, which must be answered with the payload.
func (t *T) handedOut(d deposited, by driver.LeaseID) {
	t.Helper()
	reply := t.redeem(d.Digest, by)
	if !reply.Granted || reply.State != driver.Redeemed {
		t.Fatalf("Redeem: %s, granted %t; want %s, granted", reply.State, reply.Granted, driver.Redeemed)
	}
	t.sameBytes("Redeem", reply.Payload, string(d.Payload))
}

// redeemed redeems a token as somebody new, who is returned.
func (t *T) redeemed(d deposited) driver.LeaseID {
	t.Helper()
	by := driver.NewLeaseID()
	t.handedOut(d, by)
	return by
}

// notHandedOut redeems a token, which must be answered with this state.
func (t *T) notHandedOut(digest driver.Digest, by driver.LeaseID, want driver.VaultState) {
	t.Helper()
	if reply := t.redeem(digest, by); reply.Granted || reply.State != want {
		t.Fatalf("Redeem: %s, granted %t; want %s, not granted", reply.State, reply.Granted, want)
	}
}

// revokes revokes a token, which must be answered with this state.
func (t *T) revokes(digest driver.Digest, before driver.VaultState) {
	t.Helper()
	if got := t.revoke(digest).State; got != before {
		t.Fatalf("Revoke: %s, want %s", got, before)
	}
}

// tells fails the run unless every request that asks for a token that is not
// fresh is answered with this state, and leaves it so.
func (t *T) tells(digest driver.Digest, want driver.VaultState) {
	t.Helper()
	for range 2 {
		t.isState(digest, want)
		t.notHandedOut(digest, driver.NewLeaseID(), want)
		t.revokes(digest, want)
	}
}

// atOnce calls f with 0 to n-1 at the same time.
func atOnce(n int, f func(int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// A turn is a token that is to be in this state until it turns.
type turn struct {
	deposited
	from driver.VaultState
}

// turns fails the run unless each token is in its state until after since its
// deposit, no shorter and little longer, and then in another.
func (t *T) turns(after time.Duration, to driver.VaultState, tokens ...turn) {
	t.Helper()
	for len(tokens) > 0 {
		var left []turn
		for _, d := range tokens {
			asked := time.Now()
			state := t.peek(d.Digest).State
			switch age := time.Since(d.sent); {
			case state == to && age < after-early:
				t.Fatalf("%s after %s, want %s for %s", state, age, d.from, after)
			case state == to:
				continue
			case state != d.from:
				t.Fatalf("the token is %s, want %s, then %s", state, d.from, to)
			case asked.Sub(d.answered) > after+t.slack():
				t.Fatalf("%s after %s, want %s after %s", state, age, to, after)
			}
			left = append(left, d)
		}
		tokens = left
		time.Sleep(t.Unit / 20)
	}
}
