package enginetest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
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

// all yields the items of a list, which must have no error.
func all[V any](t *T, list iter.Seq2[V, error]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for v, err := range list {
			t.must("the list", "", err)
			if !yield(v) {
				return
			}
		}
	}
}

// lists fails the run unless List yields exactly the names that begin with prefix.
func (t *T) lists(prefix string, names []string) {
	t.Helper()
	var got []string
	for lock := range all(t, t.Features.Lister.List(t.Context(), prefix)) {
		got = append(got, lock.Name)
	}
	t.listed("List", got, prefix, names)
}

// listed fails the run unless got contains exactly the names that begin with prefix.
func (t *T) listed(what string, got []string, prefix string, names []string) {
	t.Helper()
	want := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, prefix) })
	slices.Sort(want)
	slices.Sort(got)
	t.want(slices.Equal(got, want), "%s(%q) = %q, want %q", what, prefix, got, want)
}

func listsByPrefix(t *T) {
	names := []string{"orders/1", "orders/2", "orders", "order", "Orders/1", "x/orders/1", "{orders}/1"}
	for _, name := range names {
		t.take(name, t.units(40))
	}
	for _, prefix := range []string{"", "orders/", "orders", "o", "{", "orders/1", "orders/12", "none"} {
		t.lists(prefix, names)
	}
	for lock := range all(t, t.Features.Lister.List(t.Context(), "orders/1")) {
		inspected := t.inspect("orders/1")
		t.need(len(lock.Holders) == 1, "List: %+v, want one holder", lock)
		h := lock.Holders[0]
		t.want(h.LeaseID == inspected.Holders[0].LeaseID && lock.LastToken == inspected.LastToken, "List says %+v, Inspect says %+v", lock, inspected)
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
	for lock := range all(t, t.Features.Lister.List(t.Context(), "")) {
		want := t.inspect(lock.Name)
		same := lock.Mode == want.Mode && lock.QueueLength == want.QueueLength &&
			lock.LastToken == want.LastToken && len(lock.Holders) == len(want.Holders)
		for i := 0; same && i < len(want.Holders); i++ {
			a, b := lock.Holders[i], want.Holders[i]
			same = a.LeaseID == b.LeaseID && a.Token == b.Token && a.Mode == b.Mode && a.Released == b.Released &&
				a.Since >= t.ageing()-early && a.Since <= b.Since
		}
		t.want(same, "List says %+v, Inspect says %+v", lock, want)
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
	names := numbered("many/", 300)
	for _, name := range names {
		t.take(name, t.units(400))
	}
	t.lists("many/", names)
}

// numbered returns n names that begin with prefix.
func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, i)
	}
	return names
}

func listStopsEarly(t *T) {
	for _, name := range numbered("x/", 20) {
		t.take(name, t.units(40))
	}
	stopsEarly(t, t.Features.Lister.List(t.Context(), "x/"), func(lock lockinfo.LockState) { t.refused(lock.Name) })
	t.take("after", t.units(40))
}

// stopsEarly leaves the loop over a list after two items, each of which it passes to use.
func stopsEarly[V any](t *T, list iter.Seq2[V, error], use func(V)) {
	t.Helper()
	seen := 0
	for v := range all(t, list) {
		use(v)
		if seen++; seen == 2 {
			break
		}
	}
	t.want(seen == 2, "the list has %d items, want 2 and more", seen)
}

func listReportsError(t *T) {
	t.take("a", t.units(40))
	reportsError(t, t.Features.Lister.List(t.endedContext(), ""))
}

// reportsError fails the run unless a list yields exactly one error.
func reportsError[V any](t *T, list iter.Seq2[V, error]) {
	t.Helper()
	errs := 0
	for _, err := range list {
		if err != nil {
			errs++
		}
	}
	t.want(errs == 1, "a list with an ended context has %d errors, want 1", errs)
}

// endedContext returns a context that has ended.
func (t *T) endedContext() context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
