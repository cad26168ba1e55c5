package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func pruneRequirements() []Requirement {
	return []Requirement{
		{"PruneLeavesWhatIsRemembered", "", canVault, pruneLeaves,
			"Prune must not show: it leaves every token within Memory, and every payload that can be handed out"},
		{"PruneDeletesForgotten", "I11", both(canVault, func(t *T) bool { return !t.vault().SelfPruning() }), pruneDeletes,
			"Prune must delete the tokens past their Memory, up to limit of them at a time, and say how many and " +
				"whether there may be more"},
		{"SelfPruningLeavesNothingToPrune", "I11", both(canVault, func(t *T) bool { return t.vault().SelfPruning() }), selfPruning,
			"Prune must answer 0, false if the store prunes by itself, and forgotten tokens be Unknown without it"},
		{"SelfPruningDoesNotChange", "", canVault, selfPruningStays,
			"the answer of SelfPruning must not change"},
	}
}

// prune calls Prune until there is no more to prune, and returns how many tokens it deleted. It
// allows one step per token, one per payload, and a last one.
func (t *T) prune(limit, tokens int) (deleted int) {
	t.Helper()
	for range 2*tokens + 1 {
		n, more := t.pruneOnce(limit)
		deleted += n
		if !more {
			return deleted
		}
	}
	t.Fatalf("Prune(%d) says that there is more after %d steps, with %d tokens", limit, 2*tokens+1, tokens)
	return deleted
}

// pruneOnce calls Prune once.
func (t *T) pruneOnce(limit int) (deleted int, more bool) {
	t.Helper()
	deleted, more, err := t.vault().Prune(t.Context(), limit)
	t.must("Prune", "", err)
	t.need(deleted >= 0 && deleted <= limit, "Prune(%d) deleted %d", limit, deleted)
	return deleted, more
}

func pruneLeaves(t *T) {
	over, notOver := t.store("over", t.units(1)), t.store("not over", t.units(40))
	byOver, byNotOver := t.redeemed(over), t.redeemed(notOver)
	all := t.everyFate(t.units(40)) // until the TTL of over has passed, but not its RedeemGrace
	for range 2 {
		n := t.prune(driver.MaxPrune, len(all)+2)
		t.want(n == 0, "Prune deleted %d tokens, none of which was past its Memory", n)
	}
	t.handedOut(over, byOver)
	t.handedOut(notOver, byNotOver)
	for state, d := range all {
		if state == driver.Fresh {
			t.redeemed(d)
		} else {
			t.tells(d.proof, state)
		}
	}
}

// forgotten stores n tokens, and returns when they are forgotten. Some were redeemed, some revoked,
// and some expired.
func (t *T) forgotten(n int) []deposited {
	t.Helper()
	all := make([]deposited, n)
	for i := range all {
		req := t.askDeposit("forgotten "+string(rune('a'+i)), t.units(1))
		req.Memory = shortest
		all[i] = t.mustDeposit(req)
		switch i % 3 {
		case 0:
			t.redeemed(all[i])
		case 1:
			t.revokes(all[i].Digest, driver.Fresh)
		}
	}
	time.Sleep(t.units(1) + t.slack())
	return all
}

// pruneDeletes stores tokens that must stay before and after those that must be deleted.
func pruneDeletes(t *T) {
	before, expired := t.store("before", t.units(40)), t.store("expired", shortest)
	gone := t.forgotten(7)
	after := t.store("after", t.units(400))
	n := t.prune(2, 10)
	t.want(n == 7, "Prune deleted %d tokens, want the 7 past their Memory", n)
	n, more := t.pruneOnce(1)
	t.want(n == 0 && !more, "Prune(1) = %d, %t where there is nothing to prune, want 0, false", n, more)
	for _, d := range gone {
		t.tells(d.proof, driver.Unknown)
	}
	t.tells(expired.proof, driver.Expired)
	t.redeemed(before)
	t.redeemed(after)
}

func selfPruning(t *T) {
	all := append(t.forgotten(7), t.store("fresh", t.units(40)))
	for _, limit := range []int{1, driver.MaxPrune} {
		n, more := t.pruneOnce(limit)
		t.want(n == 0 && !more, "Prune(%d) = %d, %t, want 0, false of a store that prunes by itself", limit, n, more)
	}
	for _, d := range all[:7] {
		t.tells(d.proof, driver.Unknown)
	}
	t.redeemed(all[7])
}

func selfPruningStays(t *T) {
	answer := t.vault().SelfPruning()
	d := t.store("a", t.units(40))
	t.redeemed(d)
	t.prune(driver.MaxPrune, 1)
	t.want(t.vault().SelfPruning() == answer, "SelfPruning() was %t and has changed", answer)
}
