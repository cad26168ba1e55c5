package enginetest

import (
	"maps"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func inspectRequirements() []Requirement {
	return []Requirement{{
		Name:        "InspectOfUnknownIsFree",
		Explanation: "Inspect of a name never used must succeed, without holders",
		Run:         inspectUnknown,
	}, {
		Name:        "InspectReportsLease",
		Explanation: "Inspect must report the live lease: its ID, token, mode and what is left of it",
		Run:         inspectReportsLease,
	}, {
		Name:        "InspectReportsHolder",
		Explanation: "Inspect must give back the holder that was stored with the lease, whole",
		Run:         inspectReportsHolder,
	}, {
		Name:        "InspectRemembersToken",
		Explanation: "Inspect of a name that was released must report the token of its latest grant",
		Invariant:   "I2",
		Run:         inspectRemembersToken,
	}, {
		Name:        "HolderIsCopied",
		Explanation: "a holder must be stored and returned by value: the caller may change its labels afterwards",
		Run:         holderIsCopied,
	}}
}

func inspectUnknown(t *T) {
	lock := t.inspect("never")
	if lock.Name != "never" || len(lock.Holders) != 0 || lock.LastToken != 0 {
		t.Errorf("Inspect of a name never used = %+v", lock)
	}
}

func inspectReportsLease(t *T) {
	l := t.take("a", t.units(8))
	lock := t.inspect("a")
	if len(lock.Holders) != 1 {
		t.Fatalf("%d leases, want 1", len(lock.Holders))
	}
	h := lock.Holders[0]
	if h.LeaseID != l.LeaseID || h.Token != l.token || h.Released {
		t.Errorf("holder %+v, want lease ID %s and token %d, not released", h, l.LeaseID, l.token)
	}
	if lock.Mode != driver.Exclusive || lock.LastToken != l.token {
		t.Errorf("mode %d, last token %d; want %d, %d", lock.Mode, lock.LastToken, driver.Exclusive, l.token)
	}
	time.Sleep(t.units(2))
	t.lasts("Inspect", t.units(8), l, func() time.Duration { return t.live(l) })
}

func inspectReportsHolder(t *T) {
	req := ask("a", t.units(8))
	req.Holder = wholeHolder()
	h, _ := t.holding(t.grant(req))
	if !sameHolder(h.Holder, req.Holder) {
		t.Errorf("Holder = %+v, want %+v", h.Holder, req.Holder)
	}
}

func inspectRemembersToken(t *T) {
	l := t.take("a", t.units(8))
	t.mustRelease(l)
	if lock := t.inspect("a"); lock.LastToken != l.token || len(lock.Holders) != 0 {
		t.Errorf("after the release: last token %d and %d leases, want %d and none", lock.LastToken, len(lock.Holders), l.token)
	}
}

func holderIsCopied(t *T) {
	req := ask("a", t.units(8))
	req.Holder.Labels = map[string]string{"team": "a"}
	l := t.grant(req)
	req.Holder.Labels["team"] = "changed after Acquire"
	h, _ := t.holding(l)
	if got := h.Holder.Labels["team"]; got != "a" {
		t.Fatalf("label = %q, want %q as given to Acquire", got, "a")
	}
	h.Holder.Labels["team"] = "changed after Inspect"
	if labels := t.refused("a").Holder.Labels; labels != nil {
		labels["team"] = "changed after a refusal"
	}
	if h, _ = t.holding(l); h.Holder.Labels["team"] != "a" {
		t.Errorf("label = %q, want %q as given to Acquire", h.Holder.Labels["team"], "a")
	}
}

// sameHolder compares holders; no labels and an empty map of labels are the
// same.
func sameHolder(a, b driver.Holder) bool {
	same := maps.Equal(a.Labels, b.Labels)
	return same && a.Host == b.Host && a.PID == b.PID && a.Label == b.Label && a.Reason == b.Reason
}
