package enginetest

import (
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func revokeRequirements() []Requirement {
	return []Requirement{
		{"RevokeEndsFreshToken", "", canVault, revokeEnds,
			"Revoke must make a fresh token Revoked, and answer with the state before: Fresh, then Revoked"},
		{"RevokeLeavesOthers", "", canVault, revokeLeavesOthers,
			"Revoke must not change a token that is not fresh, and must leave the payload to its redeemer"},
		{"RedeemAndRevokeAgree", "", canVault, redeemAndRevoke,
			"of Redeems and Revokes, at once or not, the first must decide, and every answer must agree with it"},
	}
}

func revokeEnds(t *T) {
	d, other := t.store("a", t.units(40)), t.store("b", t.units(40))
	t.revokes(d.Digest, driver.Fresh)
	t.tells(d.proof, driver.Revoked)
	t.fresh(other)
}

func revokeLeavesOthers(t *T) {
	d := t.store("taken", t.units(40))
	by := t.redeemed(d)
	for state, d := range t.everyFate(t.units(40)) {
		if state != driver.Fresh {
			t.tells(d.proof, state)
		}
	}
	t.revokes(d.Digest, driver.Redeemed)
	t.handedOut(d, by)
}

// redeemAndRevoke lets a Redeem come first, then a Revoke, and then either by chance. It uses two
// engines if possible.
func redeemAndRevoke(t *T) {
	other := t.another()
	redeemFirst := func(n int, f func(int)) {
		for i := range n {
			f(i)
		}
	}
	revokeFirst := func(n int, f func(int)) {
		redeemFirst(n, func(i int) { f(n - 1 - i) })
	}
	for _, send := range []func(int, func(int)){redeemFirst, revokeFirst, atOnce, atOnce, atOnce, atOnce} {
		d := t.store(string(lockinfo.NewLeaseID()), t.units(40))
		replies := make([]driver.VaultReply, 16)
		errs := make([]error, len(replies))
		send(len(replies), func(i int) {
			v := []*T{t, other}[i/2%2].vault()
			if i%2 == 0 {
				replies[i], errs[i] = v.Redeem(t.Context(), driver.RedeemRequest{Proof: d.proof, By: lockinfo.NewLeaseID()})
			} else {
				replies[i], errs[i] = v.Revoke(t.Context(), d.Digest)
			}
		})
		t.agree(replies, errs, t.peek(d.proof).State)
	}
}

// agree fails the run unless one of the replies made the token final, and the others
// report that it is final.
func (t *T) agree(replies []driver.VaultReply, errs []error, final driver.VaultState) {
	t.Helper()
	first := 0
	for i, reply := range replies {
		redeems, revokes := reply.Granted, reply.State == driver.Fresh
		switch {
		case errs[i] != nil:
			t.Errorf("attempt %d: %v", i, errs[i])
		case redeems && final == driver.Redeemed, revokes && final == driver.Revoked:
			first++
		case redeems || reply.State != final:
			t.Errorf("attempt %d: %s, granted %t, of a token that ends up %s", i, reply.State, reply.Granted, final)
		}
	}
	t.need(first == 1, "%d of %d attempts made the token %s, want 1", first, len(replies), final)
}
