package enginetest

import (
	"errors"
	"slices"
	"strings"
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
		Explanation: "an unknown digest must be answered Unknown, which is not an error, and leave nothing in the store",
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
		Needs:       func(t *T) bool { return t.Features.Vault != nil && !canVault(t) },
		Run:         unsupportedVault,
	}}
}

// canVault reports whether the engine keeps one-time tokens and its server
// does too.
func canVault(t *T) bool {
	if t.Features.Vault == nil {
		return false
	}
	_, err := t.vault().Peek(t.Context(), digestOf("is there a vault?"))
	return !errors.Is(err, driver.ErrUnsupported)
}

// unsupportedVault asks twice, because the first error may be all that an
// engine knows of its server.
func unsupportedVault(t *T) {
	for range 2 {
		for _, c := range vaultCalls(t.vault()) {
			if err := c.err(t.Context(), t, lease{AcquireRequest: ask("a", t.units(8))}); !errors.Is(err, driver.ErrUnsupported) {
				t.Errorf("%s: error %v, want ErrUnsupported", c.method, err)
			}
		}
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
