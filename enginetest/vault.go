package enginetest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func vaultRequirements() []Requirement {
	return []Requirement{{
		Name:        "TokenIsFreshForItsTTL",
		Explanation: "a one-time token must be Fresh for its TTL, no shorter and little longer, and Expired from then on",
		Invariant:   "I8",
		Needs:       canVault,
		Run:         freshForTTL,
	}, {
		Name:        "TokenStateIsFinal",
		Explanation: "what has become of a one-time token must never change: a redeemed or revoked one does not expire",
		Needs:       canVault,
		Run:         stateIsFinal,
	}, {
		Name: "TokenIsForgottenAfterMemory",
		Explanation: "a one-time token must be remembered for Memory after its TTL, however early it was redeemed or " +
			"revoked, and be Unknown to every request from then on",
		Invariant: "I11",
		Needs:     canVault,
		Run:       forgottenAfterMemory,
	}, {
		Name:        "TokenStateComesAlone",
		Explanation: "an answer must carry nothing but the state, unless it is what hands out the payload or peeks at it",
		Needs:       canVault,
		Run:         stateComesAlone,
	}, {
		Name:        "PayloadComesBackWhole",
		Explanation: "a payload must come back as it was stored, each time: empty, binary or MaxPayload long",
		Needs:       canVault,
		Run:         payloadWhole,
	}, {
		Name:        "PayloadIsCopied",
		Explanation: "a payload must be stored and returned by value: the caller may change the bytes afterwards",
		Needs:       canVault,
		Run:         payloadIsCopied,
	}, {
		Name:        "VaultComparesWholeDigest",
		Explanation: "only a token's own digest, compared whole, must name it",
		Needs:       canVault,
		Run:         vaultComparesWholeDigest,
	}, {
		Name:        "VaultOfUnknownFindsNothing",
		Explanation: "an unknown digest must be answered Unknown, which is no error, and leave nothing in the store",
		Invariant:   "I11",
		Needs:       canVault,
		Run:         vaultOfUnknown,
	}, {
		Name:        "DigestIsNoName",
		Explanation: "a one-time token and a lock must not meet, even if the digest is the lock's name, nor the token be listed",
		Needs:       canVault,
		Run:         digestIsNoName,
	}, {
		Name:        "SharesVaultAcrossEngines",
		Explanation: "a one-time token must be the store's: every engine on it redeems, peeks at and revokes it",
		Needs:       both(canVault, hasJoin),
		Run:         sharesVault,
	}, {
		Name:        "UnsupportedVaultSaysSo",
		Explanation: "an engine whose server keeps no one-time tokens must answer ErrUnsupported to each request",
		Needs:       func(t *T) bool { return isVault(t) && !canVault(t) },
		Run:         unsupportedVault,
	}}
}

func isVault(t *T) bool {
	_, ok := t.Engine.(driver.Vault)
	return ok
}

// canVault reports whether the engine keeps one-time tokens and its server
// does too.
func canVault(t *T) bool {
	if !isVault(t) {
		return false
	}
	_, err := t.vault().Peek(t.Context(), digestOf("is there a vault?"))
	return !errors.Is(err, driver.ErrUnsupported)
}

// unsupportedVault asks twice, because the first error may be all that an
// engine knows of its server.
func unsupportedVault(t *T) {
	for range 2 {
		for _, c := range vaultCalls(t) {
			if err := c.err(t.Context(), t, lease{AcquireRequest: ask("a", t.units(8))}); !errors.Is(err, driver.ErrUnsupported) {
				t.Errorf("%s: error %v, want ErrUnsupported", c.method, err)
			}
		}
	}
}

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

func (t *T) vault() driver.Vault { return t.Engine.(driver.Vault) }

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

func freshForTTL(t *T) {
	d := t.store("a", t.units(2))
	short := t.store("b", shortest)
	t.turns(t.units(2), driver.Expired, turn{d, driver.Fresh})
	for _, d := range []deposited{d, short} {
		t.tells(d.Digest, driver.Expired)
	}
}

func stateIsFinal(t *T) {
	redeemed, revoked, expired := t.store("a", t.units(1)), t.store("b", t.units(1)), t.store("c", t.units(1))
	t.redeemed(redeemed)
	t.revokes(revoked.Digest, driver.Fresh)
	t.tells(redeemed.Digest, driver.Redeemed)
	t.tells(revoked.Digest, driver.Revoked)
	time.Sleep(t.units(2))
	t.tells(redeemed.Digest, driver.Redeemed)
	t.tells(revoked.Digest, driver.Revoked)
	t.tells(expired.Digest, driver.Expired)
}

func forgottenAfterMemory(t *T) {
	var all [3]deposited
	for i, secret := range []string{"redeemed", "revoked", "expired"} {
		req := t.askDeposit(secret, t.units(2))
		req.Memory = t.units(1)
		all[i] = t.mustDeposit(req)
	}
	by := t.redeemed(all[0])
	t.revokes(all[1].Digest, driver.Fresh)
	time.Sleep(t.units(2) + t.slack())
	t.turns(t.units(3), driver.Unknown,
		turn{all[0], driver.Redeemed}, turn{all[1], driver.Revoked}, turn{all[2], driver.Expired})
	t.notHandedOut(all[0].Digest, by, driver.Unknown)
	for _, d := range all {
		t.tells(d.Digest, driver.Unknown)
	}
}

func stateComesAlone(t *T) {
	redeemed, revoked, expired := t.store("a", t.units(40)), t.store("b", t.units(40)), t.store("c", shortest)
	alone := func(what string, reply driver.VaultReply) {
		t.Helper()
		if reply.Granted || len(reply.Payload) != 0 || reply.ExpiresIn != 0 {
			t.Errorf("%s: %s with granted %t, %d bytes of payload and ExpiresIn %s; want nothing but the state",
				what, reply.State, reply.Granted, len(reply.Payload), reply.ExpiresIn)
		}
	}
	if reply := t.peek(redeemed.Digest); reply.Granted {
		t.Errorf("Peek of a fresh token is granted")
	}
	if reply := t.redeem(redeemed.Digest, driver.NewLeaseID()); reply.ExpiresIn != 0 {
		t.Errorf("Redeem of a fresh token: ExpiresIn = %s, want 0", reply.ExpiresIn)
	}
	alone("Revoke of a fresh token", t.revoke(revoked.Digest))
	time.Sleep(t.units(1))
	for _, digest := range []driver.Digest{redeemed.Digest, revoked.Digest, expired.Digest, digestOf("never")} {
		for range 2 {
			alone("Peek", t.peek(digest))
			alone("Redeem", t.redeem(digest, driver.NewLeaseID()))
			alone("Revoke", t.revoke(digest))
		}
	}
}

func payloadWhole(t *T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	payloads := [][]byte{
		nil, {}, {0}, []byte("\r\n\n"), []byte("\xff\xfe\xc3"), []byte("0"), every,
		[]byte(strings.Repeat(string(every), driver.MaxPayload/len(every))),
	}
	for i, payload := range payloads {
		req := t.askDeposit(string(rune('a'+i)), t.units(40))
		req.Payload = payload
		d := t.mustDeposit(req)
		t.fresh(d)
		by := t.redeemed(d)
		for range 2 {
			t.handedOut(d, by)
		}
	}
}

func payloadIsCopied(t *T) {
	d := t.store("a", t.units(40))
	given := d.Payload
	d.Payload = slices.Clone(given)
	clear(given)
	t.fresh(d)
	clear(t.peek(d.Digest).Payload)
	t.fresh(d)
	by := driver.NewLeaseID()
	clear(t.redeem(d.Digest, by).Payload)
	t.handedOut(d, by)
}

func vaultComparesWholeDigest(t *T) {
	d := t.store("a", t.units(40))
	for _, near := range nearMisses(d.Digest) {
		t.tells(near, driver.Unknown)
	}
	for _, near := range nearMisses(d.Digest) {
		req := t.askDeposit("another", t.units(40))
		req.Digest = near
		other := t.mustDeposit(req)
		t.redeemed(other)
	}
	t.fresh(d)
}

func vaultOfUnknown(t *T) {
	never := digestOf("never")
	t.tells(never, driver.Unknown)
	t.free(string(never))
	if canList(t) {
		t.lists("", nil)
	}
	if n := t.prune(10, 1); n != 0 {
		t.Errorf("Prune deleted %d tokens that were asked for, but never deposited", n)
	}
	t.redeemed(t.store("never", t.units(40)))
}

func digestIsNoName(t *T) {
	held, free := t.store("held", t.units(40)), t.store("free", t.units(40))
	t.free(string(free.Digest))
	if canList(t) {
		t.lists("", nil)
	}
	l := t.take(string(held.Digest), t.units(40))
	if canList(t) {
		t.lists("", []string{l.Name})
	}
	t.revokes(free.Digest, driver.Fresh)
	t.redeemed(held)
	t.live(l)
	late := t.take(string(digestOf("late")), t.units(40))
	d := t.store("late", t.units(40))
	t.mustRelease(late)
	t.mustRelease(l)
	t.fresh(d)
	t.tells(held.Digest, driver.Redeemed)
}

func sharesVault(t *T) {
	other := t.join()
	d := t.store("a", t.units(40))
	other.fresh(d)
	by := other.redeemed(d)
	t.handedOut(d, by)
	t.tells(d.Digest, driver.Redeemed)
	d = other.store("b", t.units(40))
	t.revokes(d.Digest, driver.Fresh)
	other.tells(d.Digest, driver.Revoked)
}
