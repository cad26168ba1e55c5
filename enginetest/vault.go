package enginetest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func vaultRequirements() []Requirement {
	return []Requirement{
		{"TokenIsFreshForItsTTL", "I8", canVault, freshForTTL,
			"a one-time token must be Fresh for its TTL, no shorter and little longer, and Expired from then on"},
		{"TokenStateIsFinal", "", canVault, stateIsFinal,
			"what has become of a one-time token must never change: a redeemed or revoked one does not expire"},
		{"TokenIsForgottenAfterMemory", "I11", canVault, forgottenAfterMemory,
			"a one-time token must be remembered for Memory after its TTL, however early it was redeemed or " +
				"revoked, and be Unknown to every request from then on"},
		{"TokenStateComesAlone", "", canVault, stateComesAlone,
			"an answer must carry nothing but the state, unless it is what hands out the payload or peeks at it"},
		{"PayloadComesBackWhole", "", canVault, payloadWhole,
			"a payload must come back as it was stored, each time: empty, binary or MaxPayload long"},
		{"PayloadIsCopied", "", canVault, payloadIsCopied,
			"a payload must be stored and returned by value: the caller may change the bytes afterwards"},
		{"VaultComparesWholeDigest", "", canVault, vaultComparesWholeDigest,
			"only a token's own digest, compared whole, must name it"},
		{"VaultOfUnknownFindsNothing", "I11", canVault, vaultOfUnknown,
			"an unknown digest must be answered Unknown, which is not an error, and leave nothing in the store"},
		{"DigestIsNoName", "", canVault, digestIsNoName,
			"a one-time token and a lock must not meet, even if the digest is the lock's name, nor the token be listed"},
		{"SharesVaultAcrossEngines", "", both(canVault, hasJoin), sharesVault,
			"a one-time token must be the store's: every engine on it redeems, peeks at and revokes it"},
		{"UnsupportedVaultSaysSo", "", func(t *T) bool { return t.Features.Vault != nil && !canVault(t) }, unsupportedVault,
			"an engine whose server keeps no one-time tokens must answer ErrUnsupported to each request"},
	}
}

// canVault reports whether the engine and its server support one-time tokens.
func canVault(t *T) bool {
	if t.Features.Vault == nil {
		return false
	}
	_, err := t.vault().Peek(t.Context(), proofOf("is there a vault?"))
	return !errors.Is(err, driver.ErrUnsupported)
}

// unsupportedVault tries twice, because an engine may learn from the first error that its server
// lacks one-time tokens.
func unsupportedVault(t *T) {
	for range 2 {
		for _, c := range vaultCalls(t.vault()) {
			t.fails(c.method, c.err(t.Context(), t, lease{AcquireRequest: ask("a", t.units(8))}), driver.ErrUnsupported)
		}
	}
}

func freshForTTL(t *T) {
	d := t.store("a", t.units(2))
	short := t.store("b", shortest)
	t.turns(t.units(2), driver.Expired, turn{d, driver.Fresh})
	for _, d := range []deposited{d, short} {
		t.tells(d.proof, driver.Expired)
	}
}

func stateIsFinal(t *T) {
	redeemed, revoked, expired := t.store("a", t.units(1)), t.store("b", t.units(1)), t.store("c", t.units(1))
	t.redeemed(redeemed)
	t.revokes(revoked.Digest, driver.Fresh)
	t.tells(redeemed.proof, driver.Redeemed)
	t.tells(revoked.proof, driver.Revoked)
	time.Sleep(t.units(2))
	t.tells(redeemed.proof, driver.Redeemed)
	t.tells(revoked.proof, driver.Revoked)
	t.tells(expired.proof, driver.Expired)
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
	t.notHandedOut(all[0].proof, by, driver.Unknown)
	for _, d := range all {
		t.tells(d.proof, driver.Unknown)
	}
}

func stateComesAlone(t *T) {
	redeemed, revoked, expired := t.store("a", t.units(40)), t.store("b", t.units(40)), t.store("c", shortest)
	alone := func(what string, reply driver.VaultReply) {
		t.Helper()
		t.want(!reply.Granted && len(reply.Payload) == 0 && reply.ExpiresIn == 0,
			"%s: %s with granted %t, %d bytes of payload and ExpiresIn %s; want nothing but the state",
			what, reply.State, reply.Granted, len(reply.Payload), reply.ExpiresIn)
	}
	t.want(!t.peek(redeemed.proof).Granted, "Peek of a fresh token is granted")
	left := t.redeem(redeemed.proof, lockinfo.NewLeaseID()).ExpiresIn
	t.want(left == 0, "Redeem of a fresh token: ExpiresIn = %s, want 0", left)
	alone("Revoke of a fresh token", t.revoke(revoked.Digest))
	time.Sleep(t.units(1))
	for _, proof := range []driver.Proof{redeemed.proof, revoked.proof, expired.proof, proofOf("never")} {
		for range 2 {
			alone("Peek", t.peek(proof))
			alone("Redeem", t.redeem(proof, lockinfo.NewLeaseID()))
			alone("Revoke", t.revoke(proof.Digest()))
		}
	}
}

func payloadWhole(t *T) {
	payloads := [][]byte{nil, []byte(strings.Repeat(everyByte(), driver.MaxPayload/256))}
	for _, text := range strangeBytes() {
		payloads = append(payloads, []byte(text))
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
	clear(t.peek(d.proof).Payload)
	t.fresh(d)
	by := lockinfo.NewLeaseID()
	clear(t.redeem(d.proof, by).Payload)
	t.handedOut(d, by)
}

func vaultComparesWholeDigest(t *T) {
	d := t.store("a", t.units(40))
	for _, near := range nearMisses(d.proof) {
		t.tells(near, driver.Unknown)
	}
	t.tells(driver.Proof(d.Digest), driver.Unknown) // the digest, which may be in logs, is not the proof
	for _, near := range nearMisses(d.Digest) {
		t.revokes(near, driver.Unknown)
		req := t.askDeposit("another", t.units(40))
		req.Digest = near
		t.mustDeposit(req)
	}
	t.fresh(d)
	t.redeemed(d)
}

func vaultOfUnknown(t *T) {
	never := proofOf("never")
	t.tells(never, driver.Unknown)
	t.free(string(never.Digest()))
	if canList(t) {
		t.lists("", nil)
	}
	n := t.prune(10, 1)
	t.want(n == 0, "Prune deleted %d tokens that were asked for, but never deposited", n)
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
	late := t.take(string(proofOf("late").Digest()), t.units(40))
	d := t.store("late", t.units(40))
	t.mustRelease(late)
	t.mustRelease(l)
	t.fresh(d)
	t.tells(held.proof, driver.Redeemed)
}

func sharesVault(t *T) {
	other := t.join()
	d := t.store("a", t.units(40))
	other.fresh(d)
	by := other.redeemed(d)
	t.handedOut(d, by)
	t.tells(d.proof, driver.Redeemed)
	d = other.store("b", t.units(40))
	t.revokes(d.Digest, driver.Fresh)
	other.tells(d.proof, driver.Revoked)
}
