package enginetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func extendRequirements() []Requirement {
	return []Requirement{
		{"ExtendLengthens", "", nil, extendLengthens,
			"Extend must make the lease last at least until its TTL from now"},
		{"ExtendNeverShortens", "I6", nil, extendNeverShortens,
			"Extend must not shorten a lease, so that an old request that arrives late does no harm"},
		{"ExtendOfExpiredIsLost", "I4", nil, extendOfExpired,
			"Extend must answer ErrLost after the expiry and must not re-create the lease"},
		{"ExtendOfReleasedIsLost", "I4", nil, extendOfReleased,
			"Extend must answer ErrLost after the release and must not re-create the lease"},
		{"ExtendOfStaleLeavesSuccessor", "I4", nil, extendOfStale,
			"Extend by an earlier holder must answer ErrLost and leave the successor's lease unchanged"},
		{"ExtendComparesWholeID", "I4", nil, extendComparesWholeID,
			"Extend must compare the lease ID whole"},
		{"ExtendComparesToken", "I4", nil, extendComparesToken,
			"Extend with a token must answer ErrLost if the lease of the ID has another, and leave the lease live"},
		{"ExtendAnswersEachInOrder", "", nil, extendAnswersEach,
			"Extend must return one error per request, in their order, and a lost lease must not spoil the others"},
		{"ExtendTakesMaxBatch", "", nil, extendTakesMaxBatch,
			"Extend must take MaxBatch requests in one call, or Capabilities.MaxExtend if that is more"},
	}
}

// extendLengthens checks what the store reports and then what it does, because an engine may report
// an expiry that it does not keep.
func extendLengthens(t *T) {
	l := t.take("a", t.units(3))
	t.mustExtend(l, t.units(10))
	t.wantTTL(l, t.units(10))
	t.atLeast("a lease that was extended", t.live(l), t.units(8))
	time.Sleep(time.Until(l.answered.Add(t.units(3) + t.slack())))
	t.refused("a")
}

func extendNeverShortens(t *T) {
	l := t.take("a", t.units(40))
	t.mustExtend(l, t.units(2))
	t.atLeast("a lease, after Extend by less,", t.live(l), t.units(30))
}

func extendOfExpired(t *T) {
	l := t.take("a", t.units(1))
	time.Sleep(t.units(2))
	t.lost("Extend of an expired lease", t.extend(l, t.units(40)))
	t.free("a")
}

func extendOfReleased(t *T) {
	l := t.take("a", t.units(8))
	t.mustRelease(l)
	t.lost("Extend of a released lease", t.extend(l, t.units(40)))
	t.free("a")
}

func extendOfStale(t *T) {
	stale := t.take("a", t.units(8))
	t.mustRelease(stale)
	next := t.take("a", t.units(8))
	t.lost("Extend by an earlier holder", t.extend(stale, t.units(40)))
	t.atMost("the successor, after Extend by an earlier holder,", t.live(next), t.units(8))
}

// near returns leases that differ from l in one digit of the lease ID.
func near(l lease) (all []lease) {
	for _, id := range nearMisses(l.LeaseID) {
		l.LeaseID = id
		all = append(all, l)
	}
	return all
}

// nearMisses returns valid lease IDs, proofs or digests that differ from id in one
// digit.
func nearMisses[ID ~string](id ID) []ID {
	var ids []ID
	for _, i := range []int{0, len(id)/2 - 1, len(id) / 2, len(id) - 1} {
		b := []byte(id)
		b[i] = map[bool]byte{true: '1', false: '0'}[b[i] == '0']
		ids = append(ids, ID(b))
	}
	return ids
}

func extendComparesWholeID(t *T) {
	l := t.take("a", t.units(8))
	for _, other := range near(l) {
		t.lost("Extend with another digit in the lease ID", t.extend(other, t.units(40)))
	}
	t.atMost("the lease, after Extend with another digit in its ID,", t.live(l), t.units(8))
}

// extendComparesToken checks leases of both kinds, because engines may store them in different
// ways. It checks each twice, because a second Extend may take a shorter path.
func extendComparesToken(t *T) {
	l := t.take("a", t.units(40))
	leases := []lease{l}
	if canShare(t) {
		leases = append(leases, t.grant(askShared("b", t.units(40))))
	}
	for _, l := range leases {
		extend := func(token uint64) error {
			return t.extends([]driver.ExtendRequest{{Name: l.Name, LeaseID: l.LeaseID, TTL: t.units(40), Token: token}})[0]
		}
		for range 2 {
			t.must("Extend with the token of", l.Name, extend(l.token))
			for _, token := range []uint64{l.token - 2, l.token + 2, 2} {
				t.lost("Extend with another token", extend(token))
			}
		}
		t.live(l)
		t.mustExtend(l, t.units(40))
	}
}

// isLost reports whether err is ErrLost if should is true, and nil otherwise.
func isLost(err error, should bool) bool {
	return errors.Is(err, driver.ErrLost) == should && (should || err == nil)
}

func extendAnswersEach(t *T) {
	gone := t.take("gone", t.units(8))
	t.mustRelease(gone)
	first, second := t.take("first", t.units(8)), t.take("second", t.units(8))
	unknown := lease{AcquireRequest: ask("unknown", 0)}
	swapped := lease{AcquireRequest: ask("first", 0)}

	var reqs []driver.ExtendRequest
	for _, l := range []lease{gone, first, unknown, swapped, second, first} {
		reqs = append(reqs, driver.ExtendRequest{Name: l.Name, LeaseID: l.LeaseID, TTL: t.units(40)})
	}
	errs := t.extends(reqs)
	for i, lost := range []bool{true, false, true, true, false, false} {
		t.want(isLost(errs[i], lost), "answer %d (%q) = %v, want lost %t", i, reqs[i].Name, errs[i], lost)
	}
	for _, l := range []lease{first, second} {
		t.atLeast(l.Name, t.live(l), t.units(30))
	}
	t.free("unknown")
}

func extendTakesMaxBatch(t *T) {
	var leases []lease
	var reqs []driver.ExtendRequest
	for i := range t.Features.ExtendBatch() {
		l := t.take(fmt.Sprintf("batch/%d", i), t.units(40))
		leases = append(leases, l)
		reqs = append(reqs, driver.ExtendRequest{Name: l.Name, LeaseID: l.LeaseID, TTL: t.units(400)})
	}
	errs := t.extends(reqs)
	for i, l := range leases {
		t.must("Extend", l.Name, errs[i])
		t.atLeast(l.Name, t.live(l), t.units(300))
	}
}
