package enginetest

import (
	"github.com/holdfast-locks/holdfast/driver"
)

func revokeRequirements() []Requirement {
	return []Requirement{{
		Name:        "RevokeEndsFreshToken",
		Explanation: "Revoke must make a fresh token Revoked, and answer with the state before: Fresh, then Revoked",
		Needs:       canVault,
		Run:         revokeEnds,
	}, {
		Name:        "RevokeLeavesOthers",
		Explanation: "Revoke must leave a token that is not fresh as it is, and the payload to who redeemed it",
		Needs:       canVault,
		Run:         revokeLeavesOthers,
	}, {
		Name:        "RedeemOrRevokeUnderContention",
		Explanation: "of Redeems and Revokes at once the first must decide, and every answer must agree with it",
		Needs:       canVault,
		Run:         redeemOrRevoke,
	}}
}

func revokeEnds(t *T) {
	d, other := t.store("a", t.units(40)), t.store("b", t.units(40))
	t.revokes(d.Digest, driver.Fresh)
	t.tells(d.Digest, driver.Revoked)
	t.fresh(other)
}

func revokeLeavesOthers(t *T) {
	d := t.store("taken", t.units(40))
	by := t.redeemed(d)
	for state, d := range t.everyFate(t.units(40)) {
		if state != driver.Fresh {
			t.tells(d.Digest, state)
		}
	}
	t.revokes(d.Digest, driver.Redeemed)
	t.handedOut(d, by)
}

// redeemOrRevoke sends 8 of each at once, if it can through two engines.
func redeemOrRevoke(t *T) {
	other := t
	if hasJoin(t) {
		other = t.join()
	}
	for range 4 {
		d := t.store(string(driver.NewLeaseID()), t.units(40))
		replies := make([]driver.VaultReply, 16)
		errs := make([]error, len(replies))
		atOnce(len(replies), func(i int) {
			v := []*T{t, other}[i/2%2].vault()
			if i%2 == 0 {
				replies[i], errs[i] = v.Redeem(t.Context(), driver.RedeemRequest{Digest: d.Digest, By: driver.NewLeaseID()})
			} else {
				replies[i], errs[i] = v.Revoke(t.Context(), d.Digest)
			}
		})
		final, first := t.peek(d.Digest).State, 0
		for i, reply := range replies {
			isFirst := reply.Granted && final == driver.Redeemed || reply.State == driver.Fresh && final == driver.Revoked
			switch {
			case errs[i] != nil:
				t.Errorf("attempt %d: %v", i, errs[i])
			case isFirst:
				first++
			case reply.Granted || reply.State != final:
				t.Errorf("attempt %d: %s, granted %t, of a token that ends up %s", i, reply.State, reply.Granted, final)
			}
		}
		if first != 1 {
			t.Fatalf("%d of %d attempts made the token %s, want 1", first, len(replies), final)
		}
	}
}
