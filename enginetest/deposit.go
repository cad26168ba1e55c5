package enginetest

import (
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func depositRequirements() []Requirement {
	return []Requirement{
		{"DepositTwiceIsOnce", "I6", canVault, depositTwice,
			"a repeated Deposit must not be an error and must change nothing, whatever has become of the token since"},
		{"DepositUnderUsedDigestIsRefused", "", canVault, depositUnderUsedDigest,
			"a Deposit with another By must answer ErrKindMismatch and change nothing, whatever has become of " +
				"the token that is there"},
		{"DepositsOnceUnderContention", "", canVault, func(t *T) { depositsOnce(t, t) },
			"of many Deposits under one digest at once, one must store its token, with its repeats"},
		{"DepositsOnceAcrossEngines", "", both(canVault, hasJoin), func(t *T) { depositsOnce(t, t.join()) },
			"of many Deposits under one digest at once, through whatever engines, one must store its token"},
		{"ForgottenDigestIsFree", "I11", canVault, forgottenIsFree,
			"a digest that is Unknown must be free for another Deposit, whether or not it was pruned"},
	}
}

// everyFate stores one token in every state that a known token can have. The fresh one has the
// given TTL.
func (t *T) everyFate(ttl time.Duration) map[driver.VaultState]deposited {
	t.Helper()
	all := map[driver.VaultState]deposited{
		driver.Redeemed: t.store("redeemed", t.units(40)),
		driver.Revoked:  t.store("revoked", t.units(40)),
		driver.Expired:  t.store("expired", shortest),
	}
	t.redeemed(all[driver.Redeemed])
	t.revokes(all[driver.Revoked].Digest, driver.Fresh)
	all[driver.Fresh] = t.store("fresh", ttl)
	time.Sleep(t.units(1))
	return all
}

func depositTwice(t *T) {
	for state, d := range t.everyFate(t.units(8)) {
		t.mustDeposit(d.asked)
		t.unchanged("Peek after a repeated Deposit", d, state)
	}
}

// unchanged fails the run unless a token is still in this state. A fresh token must also last for
// its TTL, and be redeemable.
func (t *T) unchanged(what string, d deposited, state driver.VaultState) {
	t.Helper()
	if state != driver.Fresh {
		t.tells(d.proof, state)
		return
	}
	t.lasts(what, d.TTL, d.life(), func() time.Duration { return t.fresh(d) })
	t.redeemed(d)
}

// life returns a lease with the times of the deposit.
func (d deposited) life() lease { return lease{sent: d.sent, answered: d.answered} }

func depositUnderUsedDigest(t *T) {
	for state, d := range t.everyFate(t.units(8)) {
		others := []lockinfo.LeaseID{lockinfo.NewLeaseID()}
		for _, by := range append(others, nearMisses(d.By)...) {
			req := d.DepositRequest
			for _, payload := range [][]byte{d.Payload, []byte("of another")} {
				req.By, req.Payload, req.TTL = by, payload, t.units(80)
				t.fails("Deposit under the digest of a token that is "+state.String(), t.vault().Deposit(t.Context(), req), driver.ErrKindMismatch)
			}
		}
		t.mustDeposit(d.asked) // the repeat of the first is still not an error
		t.unchanged("Peek after another's Deposit", d, state)
	}
}

// depositsOnce sends 8 deposits at once, each twice: once through each T.
func depositsOnce(t, other *T) {
	for range 4 {
		secret := string(lockinfo.NewLeaseID())
		reqs := make([]asked, 8)
		for i := range reqs {
			reqs[i] = t.askDeposit(secret, t.units(40))
			reqs[i].Payload = []byte(reqs[i].By)
		}
		errs := make([]error, 2*len(reqs))
		atOnce(len(errs), func(i int) {
			e := []*T{t, other}[i%2]
			errs[i] = e.vault().Deposit(t.Context(), reqs[i/2].DepositRequest)
		})
		winner := string(t.peek(proofOf(secret)).Payload)
		for i, err := range errs {
			switch wins := string(reqs[i/2].Payload) == winner; {
			case wins && err != nil:
				t.Errorf("attempt %d, whose token is stored: %v", i, err)
			case !wins && !errors.Is(err, driver.ErrKindMismatch):
				t.Errorf("attempt %d, whose token is not stored: error %v, want ErrKindMismatch", i, err)
			}
		}
	}
}

// forgottenIsFree reuses half of the digests before Prune has deleted them.
func forgottenIsFree(t *T) {
	all := t.forgotten(6)
	for i, d := range all {
		if i == 3 {
			t.prune(10, 6)
		}
		d.By, d.Payload, d.TTL, d.Memory = lockinfo.NewLeaseID(), []byte("of another"), t.units(40), t.units(40)
		all[i] = t.mustDeposit(d.asked)
	}
	t.prune(10, 6)
	for _, d := range all {
		t.fresh(d)
		t.redeemed(d)
	}
}
