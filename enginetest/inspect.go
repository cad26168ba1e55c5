package enginetest

import (
	"maps"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func inspectRequirements() []Requirement {
	return []Requirement{
		{"InspectOfUnknownIsFree", "", nil, inspectUnknown,
			"Inspect of a name never used must succeed, without holders"},
		{"InspectReportsLease", "", nil, inspectReportsLease,
			"Inspect must report the live lease: its ID, token, mode, what is left of it, and its TTL or none"},
		{"InspectReportsHolder", "", nil, inspectReportsHolder,
			"Inspect must give back the holder that was stored with the lease, whole"},
		{"InspectRemembersToken", "I2", nil, inspectRemembersToken,
			"Inspect of a name that was released must report the token of its latest grant"},
		{"HolderIsCopied", "", nil, holderIsCopied,
			"a holder must be stored and returned by value: the caller may change its labels afterwards"},
		{"InspectReportsQueue", "", canQueue, inspectReportsQueue,
			"Inspect must report the places in order: their IDs, modes, permits and holders, since and until when"},
		{"InspectShowsFirstPlaces", "", canQueue, inspectShowsFirst,
			"Inspect of a long queue must describe the first ShownPlaces at least, in order, and say how many there are"},
		{"PlaceKeepsHolder", "", canQueue, placeKeepsHolder,
			"the holder of a place must be stored by value, whole, and given to the lease that is handed over"},
	}
}

func inspectUnknown(t *T) {
	lock := t.counts("never", 0, lease{})
	t.want(lock.Name == "never", "Inspect of a name never used = %+v", lock)
}

func inspectReportsLease(t *T) {
	l := t.take("a", t.units(8))
	lock := t.counts("a", 1, l)
	h := lock.Holders[0]
	t.want(h.LeaseID == l.LeaseID && h.Token == l.token && !h.Released && lock.Mode == lockinfo.Exclusive,
		"mode %s, holder %+v, want %s, lease ID %s and token %d, not released", lock.Mode, h, lockinfo.Exclusive, l.LeaseID, l.token)
	time.Sleep(t.units(2))
	t.lasts("Inspect", t.units(8), l, func() time.Duration { return t.live(l) })
	t.wantTTL(l, t.units(8))
}

// wantTTL checks the TTL of a live lease, if the store reports it.
func (t *T) wantTTL(l lease, want time.Duration) {
	t.Helper()
	h, _ := t.holding(l)
	t.want(h.TTL == 0 || h.TTL == want, "TTL = %s, want %s, or 0 if the store does not know", h.TTL, want)
}

func inspectReportsHolder(t *T) {
	l := t.grant(t.askWhole("a", t.units(8)))
	h, _ := t.holding(l)
	t.sameHolder("Inspect", h.Holder, l.Holder)
}

func inspectRemembersToken(t *T) {
	l := t.take("a", t.units(8))
	t.mustRelease(l)
	t.counts("a", 0, l)
}

func holderIsCopied(t *T) {
	req := ask("a", t.units(8))
	req.Holder.Labels = map[string]string{"team": "a"}
	l := t.grant(req)
	req.Holder.Labels["team"] = "changed after Acquire"
	h, _ := t.holding(l)
	got := h.Holder.Labels["team"]
	t.need(got == "a", "label = %q, want %q as given to Acquire", got, "a")
	h.Holder.Labels["team"] = "changed after Inspect"
	if labels := t.refused("a").Holder.Labels; labels != nil {
		labels["team"] = "changed after a refusal"
	}
	h, _ = t.holding(l)
	t.want(h.Holder.Labels["team"] == "a", "label = %q, want %q as given to Acquire", h.Holder.Labels["team"], "a")
}

func inspectReportsQueue(t *T) {
	var plain, counting []driver.AcquireRequest
	for _, permits := range []int{3, 2, 3, 1} {
		plain = append(plain, ask("a", t.units(40)))
		counting = append(counting, askPermits("b", permits, 3, t.units(40)))
	}
	if canShare(t) {
		plain[2].Mode = lockinfo.Shared
	}
	t.queueReported(plain[0], plain[1:])
	if canCount(t) {
		t.queueReported(counting[0], counting[1:])
	}
}

// queueReported grants holder, queues reqs behind it, and checks what Inspect reports of their
// places.
func (t *T) queueReported(holder driver.AcquireRequest, reqs []driver.AcquireRequest) {
	t.Helper()
	t.grant(holder)
	for i := range reqs {
		reqs[i] = forPlace(reqs[i], t.units(8*(i+1)))
		reqs[i].Holder.Label = string(rune('x' + i))
	}
	asked := time.Now()
	t.placed(reqs[0], 1)
	answered := time.Now()
	time.Sleep(t.units(1))
	t.placed(reqs[1], 2)
	t.placed(reqs[2], 3)
	t.placed(reqs[0], 1) // a repeat, which does not change since when it waits
	looked := time.Now()
	lock := t.inspect(holder.Name)
	t.need(len(lock.Queue) == len(reqs) && lock.QueueLength == len(reqs), "queue = %+v, length %d, want %d places", lock.Queue, lock.QueueLength, len(reqs))
	for i, w := range lock.Queue {
		req := reqs[i]
		t.want(w.LeaseID == req.LeaseID && w.Mode == req.Mode && sameHolder(w.Holder, req.Holder), "place %d = %+v, want the place of %+v", i+1, w, req)
		t.want(w.ExpiresIn >= req.WaiterTTL-t.slack() && w.ExpiresIn <= req.WaiterTTL+t.slack(), "place %d lasts for another %s, want %s", i+1, w.ExpiresIn, req.WaiterTTL)
	}
	t.heldSince("Inspect, of the first place,", lock.Queue[0].Since, lease{AcquireRequest: reqs[0], sent: asked, answered: answered}, looked)
	since := lock.Queue[2].Since
	t.want(since >= 0 && since <= t.slack(), "Since = %s of a new place, want next to nothing", since)
}

func inspectShowsFirst(t *T) {
	const behind = 4
	t.take("a", t.units(400))
	var first []lockinfo.LeaseID
	for i := range driver.ShownPlaces + behind {
		first = append(first, t.queueFor("a", i+1, t.units(4000)).LeaseID)
	}
	lock := t.inspect("a")
	t.need(len(lock.Queue) >= driver.ShownPlaces && lock.QueueLength == driver.ShownPlaces+behind,
		"%d places shown of %d, want %d of %d", len(lock.Queue), lock.QueueLength, driver.ShownPlaces, driver.ShownPlaces+behind)
	for i, w := range lock.Queue {
		t.need(w.LeaseID == first[i], "place %d does not belong to request %d", i+1, i+1)
	}
}

func placeKeepsHolder(t *T) {
	l := t.take("a", t.units(40))
	req := t.placed(forPlace(t.askWhole("a", t.units(40)), t.units(40)), 1)
	req.Holder.Labels["team"] = "changed after Acquire"
	for _, w := range t.inspect("a").Queue {
		t.sameHolder("the place", w.Holder, t.wholeHolder())
		w.Holder.Labels["team"] = "changed after Inspect"
	}
	t.mustRelease(l)
	h, _ := t.holding(t.handed(req))
	t.sameHolder("the lease that was handed over", h.Holder, t.wholeHolder())
}

// sameHolder reports whether two holders are equal. A nil map of labels equals an empty one.
func sameHolder(a, b lockinfo.Holder) bool {
	same := maps.Equal(a.Labels, b.Labels)
	return same && a.Host == b.Host && a.PID == b.PID && a.User == b.User && a.Program == b.Program && a.Person == b.Person &&
		a.Label == b.Label && a.Reason == b.Reason && a.Caller == b.Caller
}
