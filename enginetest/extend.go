package enginetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
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

// extendLengthens checks the store's memory and then its behaviour, since an engine may
// report an expiry that it does not keep.
func extendLengthens(t *T) {
	l := t.take("a", t.units(3))
	t.mustExtend(l, t.units(10))
	t.wantTTL(l, t.units(10))
	if left := t.live(l); left < t.units(8) {
		t.Errorf("%s left after Extend by %s", left, t.units(10))
	}
	time.Sleep(time.Until(l.answered.Add(t.units(3) + t.slack())))
	t.refused("a")
}

func extendNeverShortens(t *T) {
	l := t.take("a", t.units(40))
	t.mustExtend(l, t.units(2))
	if left := t.live(l); left < t.units(30) {
		t.Errorf("Extend by %s left %s of %s", t.units(2), left, t.units(40))
	}
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
	if left := t.live(next); left > t.units(8)+t.slack() {
		t.Errorf("Extend by an earlier holder gave the successor %s", left)
	}
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
	for _, id := range nearMisses(l.LeaseID) {
		near := l
		near.LeaseID = id
		t.lost("Extend with another digit in the lease ID", t.extend(near, t.units(40)))
	}
	if left := t.live(l); left > t.units(8)+t.slack() {
		t.Errorf("Extend with another digit in the lease ID gave the lease %s", left)
	}
}

// extendComparesToken looks at leases of both kinds, which engines may keep in different
// ways, twice: what has been extended once may be extended by a shorter way.
func extendComparesToken(t *T) {
	l := t.take("a", t.units(40))
	leases := []lease{l}
	if canShare(t) {
		req := ask("b", t.units(40))
		req.Mode = lockinfo.Shared
		leases = append(leases, t.grant(req))
	}
	for _, l := range leases {
		extend := func(token uint64) error {
			return t.Engine.Extend(t.Context(), []driver.ExtendRequest{{Name: l.Name, LeaseID: l.LeaseID, TTL: t.units(40), Token: token}})[0]
		}
		for range 2 {
			if err := extend(l.token); err != nil {
				t.Errorf("Extend with the lease's token: %v", err)
			}
			for _, token := range []uint64{l.token - 2, l.token + 2, 2} {
				t.lost("Extend with another token", extend(token))
			}
		}
		t.live(l)
		t.mustExtend(l, t.units(40))
	}
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
	errs := t.Engine.Extend(t.Context(), reqs)
	if len(errs) != len(reqs) {
		t.Fatalf("%d answers to %d requests", len(errs), len(reqs))
	}
	for i, lost := range []bool{true, false, true, true, false, false} {
		if errors.Is(errs[i], driver.ErrLost) != lost || !lost && errs[i] != nil {
			t.Errorf("answer %d (%q) = %v, want lost %t", i, reqs[i].Name, errs[i], lost)
		}
	}
	for _, l := range []lease{first, second} {
		if left := t.live(l); left < t.units(30) {
			t.Errorf("%q lasts for another %s, want %s", l.Name, left, t.units(40))
		}
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
	errs := t.Engine.Extend(t.Context(), reqs)
	if len(errs) != len(reqs) {
		t.Fatalf("%d answers to %d requests", len(errs), len(reqs))
	}
	for i, l := range leases {
		if errs[i] != nil {
			t.Errorf("answer %d: %v", i, errs[i])
		} else if left := t.live(l); left < t.units(300) {
			t.Errorf("lease %d lasts for another %s, want %s", i, left, t.units(400))
		}
	}
}
