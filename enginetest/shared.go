package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func sharedRequirements() []Requirement {
	return []Requirement{
		{"SharedLeasesAreCompatible", "I1", canShare, sharedCompatible,
			"any number of shared leases must be live at once, each with a token of its own"},
		{"SharedLeaseEndsAlone", "I1", canShare, sharedEndsAlone,
			"a reader that expires must free its own lease and no other, and a short one must not shorten the others"},
		{"SharedKeepsExclusiveOut", "I1", canShare, sharedKeepsExclusiveOut,
			"an exclusive request must be refused until the last shared lease has ended"},
		{"ExclusiveKeepsSharedOut", "I1", canShare, exclusiveKeepsSharedOut,
			"a shared request must be refused while an exclusive lease is live"},
		{"ModeEndsWithLease", "I1", canShare, modeEndsWithLease,
			"a lease must be of the mode that it asked for, whatever the mode of those that have ended"},
		{"RefusalNamesFirstToEnd", "", canShare, refusalNamesFirst,
			"of several leases in the way a refusal must describe the one that ends first"},
	}
}

// canShare reports whether the engine has shared leases.
func canShare(t *T) bool { return t.Features.Downgrader != nil }

// askShared returns a shared request with a new lease ID.
func askShared(name string, ttl time.Duration) driver.AcquireRequest {
	req := ask(name, ttl)
	req.Mode = lockinfo.Shared
	return req
}

func sharedCompatible(t *T) {
	first := t.grant(askShared("a", t.units(40)))
	second := t.grant(askShared("a", t.units(40)))
	t.above(first.token, second)
	for _, l := range []lease{first, second} {
		t.grantedAgain(l.AcquireRequest, l)
	}
	lock := t.counts("a", 2, second)
	t.want(lock.Mode == lockinfo.Shared && lock.Holders[0].LeaseID == first.LeaseID && lock.Holders[1].LeaseID == second.LeaseID,
		"lock = %+v, want mode %s, and the holders in the order of their grants", lock, lockinfo.Shared)
	t.mustRelease(first)
	t.lost("Extend of the released one of two leases", t.extend(first, t.units(80)))
	t.mustRelease(second)
	t.free("a")
}

// sharedEndsAlone checks a name with a short lease before a long one, and another with a long lease
// before a short one.
func sharedEndsAlone(t *T) {
	dead := t.grant(askShared("a", t.units(1)))
	long := []lease{t.grant(askShared("a", t.units(40))), t.grant(askShared("b", t.units(40)))}
	dead2 := t.grant(askShared("b", t.units(1)))
	time.Sleep(t.units(2))
	for _, l := range []lease{dead, dead2} {
		t.lost("Extend of the expired one of two leases", t.extend(l, t.units(8)))
	}
	for _, l := range long {
		t.refused(l.Name)
		t.atLeast("the lease beside one that expired", t.live(l), t.units(30))
		t.mustRelease(l)
		t.take(l.Name, t.units(8))
	}
}

func sharedKeepsExclusiveOut(t *T) {
	first := t.grant(askShared("a", t.units(40)))
	second := t.grant(askShared("a", t.units(40)))
	t.refused("a")
	t.mustRelease(second)
	t.refused("a")
	t.mustRelease(first)
	t.take("a", t.units(40))
}

func exclusiveKeepsSharedOut(t *T) {
	l := t.take("a", t.units(40))
	t.refuse(askShared("a", t.units(8)))
	t.mustRelease(l)
	t.grant(askShared("a", t.units(8)))
}

func modeEndsWithLease(t *T) {
	t.grant(askShared("was shared", t.units(1)))
	t.take("was exclusive", t.units(1))
	time.Sleep(t.units(2))
	t.take("was shared", t.units(40))
	t.refuse(askShared("was shared", t.units(8)))
	t.grant(askShared("was exclusive", t.units(40)))
	t.grant(askShared("was exclusive", t.units(40)))
	t.refused("was exclusive")
}

func refusalNamesFirst(t *T) {
	for i, ttls := range [][]int{{40, 8, 80}, {8, 40}, {40, 80, 8}} {
		name := string(rune('a' + i))
		var first lease
		for _, ttl := range ttls {
			req := askShared(name, t.units(ttl))
			if ttl == 8 {
				req.Holder.Label = "ends first"
			}
			if l := t.grant(req); ttl == 8 {
				first = l
			}
		}
		t.lasts("the first of several to end", t.units(8), first, func() time.Duration { return t.refused(name).ExpiresIn })
		holder := t.refused(name).Holder
		t.want(holder.Label == "ends first", "TTLs %v: holder %+v, want the holder of the lease that ends first", ttls, holder)
	}
}
