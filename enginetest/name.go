package enginetest

import (
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

func nameRequirements() []Requirement {
	return []Requirement{
		{"TakesEveryName", "", nil, takesEveryName,
			"every name that driver.CheckName allows must be served and reported unchanged"},
		{"KeepsNamesApart", "I1", nil, keepsNamesApart,
			"names that differ in one byte must be separate locks"},
	}
}

// strangeNames returns valid names that stores and their encodings often handle wrongly.
func strangeNames() []string {
	return []string{
		"a", " ", "a b", "/", "orders/42", "a//b", "../a", "a:b", "a%2Fb", "a\\b", "'; --", `"`, "`", "?", "#", "&",
		"{", "}", "{}", "{a}", "a{b}c", "{a}{b}", "}{", "*", "[a]", "a?b", "NULL", "0", "-1",
		"Übung", "u\u0308", "ключ", "锁", "🔒", "\u200b", "\ufeff", "\ufffd",
		strings.Repeat("n", driver.MaxNameLen), strings.Repeat("é", driver.MaxNameLen/2),
	}
}

func takesEveryName(t *T) {
	for _, name := range strangeNames() {
		l := t.take(name, t.units(40))
		t.refused(name)
		lock := t.inspect(name)
		t.want(lock.Name == name && len(lock.Holders) == 1, "Inspect(%q): name %q with %d leases, want 1", name, lock.Name, len(lock.Holders))
		t.mustExtend(l, t.units(80))
		t.mustRelease(l)
	}
}

func keepsNamesApart(t *T) {
	long := strings.Repeat("n", driver.MaxNameLen-1)
	names := []string{
		"a", "A", "a ", " a", "a/", "/a", "{a}", "{a", "a}", "{a}b", "b{a}", "a:b", "a/b", "a*", "a?", "a_", "a%", "a\\",
		"é", "e\u0301", "e", long, long + "a", long + "b", long[1:] + "a",
	}
	leases := make([]lease, len(names))
	for i, name := range names {
		leases[i] = t.take(name, t.units(40))
	}
	for i, l := range leases {
		t.live(l)
		if i%2 == 0 {
			t.mustRelease(l)
		}
	}
	for i, l := range leases {
		_, ok := t.holding(l)
		t.want(ok == (i%2 == 1), "%q: live %t after others were released", l.Name, ok)
	}
}
