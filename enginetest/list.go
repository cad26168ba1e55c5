package enginetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

func listRequirements() []Requirement {
	return []Requirement{
		{"ListsByPrefix", "", canList, listsByPrefix,
			"List must yield the held locks whose names begin with prefix, as Inspect reports them"},
		{"ListsPrefixLiterally", "", canList, listsLiterally,
			"List must take the characters of a pattern in prefix literally"},
		{"ListsOnlyHeld", "", canList, listsOnlyHeld,
			"List must leave out names that are free: released, expired or cancelled"},
		{"ListReportsAsInspect", "", canList, listReportsAsInspect,
			"List must say the same as Inspect of mode, limit, permits, since when, and the length of the queue"},
		{"ListsQueuedNames", "", both(canList, canQueue), listsQueued,
			"List must yield a name that has places, even if its last lease expired and nobody noticed yet"},
		{"ListsEachOnce", "", canList, listsEachOnce,
			"List must yield every lock that is there all the time, once"},
		{"ListStopsEarly", "", canList, listStopsEarly,
			"List must stop when the loop does, and the loop's body may use the engine"},
		{"ListReportsError", "", canList, listReportsError,
			"List must yield an error, not an empty list, when it cannot be carried out"},
	}
}

func canList(t *T) bool { return t.Features.Lister != nil }

// list returns the names under prefix, sorted.
func (t *T) list(prefix string) []string {
	t.Helper()
	names := []string{}
	for lock, err := range t.Features.Lister.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("List(%q): %v", prefix, err)
		}
		names = append(names, lock.Name)
	}
	slices.Sort(names)
	return names
}

// lists fails the run unless List yields exactly the names that begin with
// prefix.
func (t *T) lists(prefix string, names []string) {
	t.Helper()
	want := []string{}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if got := t.list(prefix); !slices.Equal(got, want) {
		t.Errorf("List(%q) = %q, want %q", prefix, got, want)
	}
}

func listsByPrefix(t *T) {
	names := []string{"orders/1", "orders/2", "orders", "order", "Orders/1", "x/orders/1", "{orders}/1"}
	for _, name := range names {
		t.take(name, t.units(40))
	}
	for _, prefix := range []string{"", "orders/", "orders", "o", "{", "orders/1", "orders/12", "none"} {
		t.lists(prefix, names)
	}
	for lock, err := range t.Features.Lister.List(t.Context(), "orders/1") {
		inspected := t.inspect("orders/1")
		if err != nil || len(lock.Holders) != 1 {
			t.Fatalf("List: %+v, error %v, want one holder", lock, err)
		}
		if h := lock.Holders[0]; h.LeaseID != inspected.Holders[0].LeaseID || lock.LastToken != inspected.LastToken {
			t.Errorf("List says %+v, Inspect says %+v", lock, inspected)
		}
	}
}

func listsLiterally(t *T) {
	names := []string{
		"a*b", "axb", "a?b", "a[x]b", "a[xy", "a\\*b", "a\\", "a%b", "a_b", "a^b", "*", "?", "[a]", "{a}b", "{a", "b", "é1", "ê1",
	}
	for _, name := range names {
		t.take(name, t.units(40))
	}
	for _, prefix := range []string{"a*", "*", "a?", "?", "a[x]", "a[", "[a", "[^a]", "a\\", "a\\*", "a%", "a_", "{a}", "{", "é"} {
		t.lists(prefix, names)
	}
}

func listsOnlyHeld(t *T) {
	t.mustRelease(t.take("x/released", t.units(40)))
	t.take("x/expired", t.units(1))
	cancelled := t.take("x/cancelled", t.units(40))
	t.mustCancel(cancelled.AcquireRequest)
	held := t.take("x/held", t.units(40))
	t.refused("x/held")
	time.Sleep(t.units(2))
	t.lists("", []string{held.Name})
}

func listReportsAsInspect(t *T) {
	t.take("exclusive", t.units(40))
	if canShare(t) {
		t.grant(askShared("shared", t.units(40)))
		t.grant(askShared("shared", t.units(40)))
	}
	if canCount(t) {
		t.grant(askPermits("semaphore", 2, 7, t.units(40)))
		t.grant(askPermits("semaphore", 3, 7, t.units(40)))
	}
	if canQueue(t) {
		t.queue("exclusive", 1)
		t.queue("exclusive", 2)
	}
	time.Sleep(t.ageing())
	for lock, err := range t.Features.Lister.List(t.Context(), "") {
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		want := t.inspect(lock.Name)
		same := lock.Mode == want.Mode && lock.QueueLength == want.QueueLength &&
			lock.LastToken == want.LastToken && len(lock.Holders) == len(want.Holders)
		for i := 0; same && i < len(want.Holders); i++ {
			a, b := lock.Holders[i], want.Holders[i]
			same = a.LeaseID == b.LeaseID && a.Token == b.Token && a.Mode == b.Mode && a.Released == b.Released &&
				a.Since >= t.ageing()-early && a.Since <= b.Since
		}
		if !same {
			t.Errorf("List says %+v, Inspect says %+v", lock, want)
		}
	}
}

func listsQueued(t *T) {
	t.take("a", t.units(1))
	waiter := t.queue("a", 1)
	t.take("b", t.units(40))
	left := t.queue("b", 1)
	t.mustCancel(left)
	time.Sleep(t.units(2))
	t.lists("", []string{"a", "b"})
	t.grant(waiter)
}

func listsEachOnce(t *T) {
	names := make([]string, 300)
	for i := range names {
		names[i] = fmt.Sprintf("many/%d", i)
		t.take(names[i], t.units(400))
	}
	t.lists("many/", names)
}

func listStopsEarly(t *T) {
	for i := range 20 {
		t.take(fmt.Sprintf("x/%d", i), t.units(40))
	}
	seen := 0
	for lock, err := range t.Features.Lister.List(t.Context(), "x/") {
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		t.refused(lock.Name)
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Errorf("List yielded %d locks, want 2 of 20", seen)
	}
	t.take("after", t.units(40))
}

func listReportsError(t *T) {
	t.take("a", t.units(40))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errs := 0
	for _, err := range t.Features.Lister.List(ctx, "") {
		if err != nil {
			errs++
		}
	}
	if errs != 1 {
		t.Errorf("List with an ended context yielded %d errors, want 1", errs)
	}
}
