package enginetest

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// An asked is a request to store a one-time token, with the proof that belongs to its digest.
type asked struct {
	driver.DepositRequest
	proof driver.Proof
}

// A deposited is a one-time token that the store has accepted.
type deposited struct {
	asked
	sent     time.Time // before the request was sent
	answered time.Time
}

// shortest is the shortest TTL and Memory that the contract allows. A token with it
// expires, or is forgotten, one unit later.
const shortest = 10 * time.Millisecond

func proofOf(secret string) driver.Proof {
	sum := sha256.Sum256([]byte(secret))
	return driver.Proof(hex.EncodeToString(sum[:]))
}

func (t *T) vault() driver.Vault { return t.Features.Vault }

// askDeposit returns a request with its own By, for a token with a long Memory.
func (t *T) askDeposit(secret string, ttl time.Duration) asked {
	proof := proofOf(secret)
	return asked{driver.DepositRequest{
		Digest: proof.Digest(), By: lockinfo.NewLeaseID(), Payload: []byte("payload of " + secret), TTL: ttl, Memory: t.units(400),
	}, proof}
}

// mustDeposit stores a token, which must succeed.
func (t *T) mustDeposit(req asked) deposited {
	t.Helper()
	sent := time.Now()
	t.must("Deposit", "", t.vault().Deposit(t.Context(), req.DepositRequest))
	return deposited{asked: req, sent: sent, answered: time.Now()}
}

// store stores a token with a long Memory.
func (t *T) store(secret string, ttl time.Duration) deposited {
	t.Helper()
	return t.mustDeposit(t.askDeposit(secret, ttl))
}

func (t *T) peek(proof driver.Proof) driver.VaultReply {
	t.Helper()
	reply, err := t.vault().Peek(t.Context(), proof)
	t.must("Peek", "", err)
	return reply
}

func (t *T) redeem(proof driver.Proof, by lockinfo.LeaseID) driver.VaultReply {
	t.Helper()
	reply, err := t.vault().Redeem(t.Context(), driver.RedeemRequest{Proof: proof, By: by})
	t.must("Redeem", "", err)
	return reply
}

func (t *T) revoke(digest driver.Digest) driver.VaultReply {
	t.Helper()
	reply, err := t.vault().Revoke(t.Context(), digest)
	t.must("Revoke", "", err)
	return reply
}

// isState fails the run unless Peek answers with this state.
func (t *T) isState(proof driver.Proof, want driver.VaultState) {
	t.Helper()
	got := t.peek(proof).State
	t.need(got == want, "Peek: the token is %s, want %s", got, want)
}

// fresh fails the run unless the token is fresh, and returns for how long.
func (t *T) fresh(d deposited) time.Duration {
	t.Helper()
	reply := t.peek(d.proof)
	t.need(reply.State == driver.Fresh, "Peek: the token is %s, want %s", reply.State, driver.Fresh)
	t.want(reply.ExpiresIn > 0, "Peek: ExpiresIn = %s of a fresh token, want more than 0", reply.ExpiresIn)
	t.sameBytes("Peek", reply.Payload, string(d.Payload))
	return reply.ExpiresIn
}

// handedOut redeems a token. The reply must grant it, with the payload.
func (t *T) handedOut(d deposited, by lockinfo.LeaseID) {
	t.Helper()
	reply := t.redeem(d.proof, by)
	t.need(reply.Granted && reply.State == driver.Redeemed, "Redeem: %s, granted %t; want %s, granted", reply.State, reply.Granted, driver.Redeemed)
	t.sameBytes("Redeem", reply.Payload, string(d.Payload))
}

// redeemed redeems a token with a new By, and returns that.
func (t *T) redeemed(d deposited) lockinfo.LeaseID {
	t.Helper()
	by := lockinfo.NewLeaseID()
	t.handedOut(d, by)
	return by
}

// notHandedOut redeems a token. The reply must not grant it, and contain this state.
func (t *T) notHandedOut(proof driver.Proof, by lockinfo.LeaseID, want driver.VaultState) {
	t.Helper()
	reply := t.redeem(proof, by)
	t.need(!reply.Granted && reply.State == want, "Redeem: %s, granted %t; want %s, not granted", reply.State, reply.Granted, want)
}

// revokes revokes a token, whose state must have been before.
func (t *T) revokes(digest driver.Digest, before driver.VaultState) {
	t.Helper()
	got := t.revoke(digest).State
	t.need(got == before, "Revoke: %s, want %s", got, before)
}

// tells fails the run unless the replies to all requests for a used token contain this state and do
// not change it.
func (t *T) tells(proof driver.Proof, want driver.VaultState) {
	t.Helper()
	for range 2 {
		t.isState(proof, want)
		t.notHandedOut(proof, lockinfo.NewLeaseID(), want)
		t.revokes(proof.Digest(), want)
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

// A turn is a token and the state that it is in before the change.
type turn struct {
	deposited
	from driver.VaultState
}

// turns fails the run unless each token changes from its state to the state to when after has
// passed since its deposit, not earlier and little later.
func (t *T) turns(after time.Duration, to driver.VaultState, tokens ...turn) {
	t.Helper()
	for len(tokens) > 0 {
		var left []turn
		for _, d := range tokens {
			asked := time.Now()
			state := t.peek(d.proof).State
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
