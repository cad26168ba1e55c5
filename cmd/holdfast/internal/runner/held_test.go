package runner

import (
	"slices"
	"testing"
)

// TestParseHeld checks that ParseHeld reads what String writes, and no locks in other text.
func TestParseHeld(t *testing.T) {
	locks := Held{{41, "redis://h:1/2?prefix=a%20b", "a b"}, {42, "sqlite:///a b.db", "x/ "}}
	const text = "41 redis://h:1/2?prefix=a%20b a b\n42 sqlite:///a%20b.db x/ "
	if got := locks.String(); got != text {
		t.Errorf("%q, want %q", got, text)
	}
	locks[1].Store = "sqlite:///a%20b.db"
	if got := ParseHeld(text); !slices.Equal(got, locks) {
		t.Errorf("%+v, want %+v", got, locks)
	}
	for _, other := range []string{"", "\n", "41", "41 redis://h", "many redis://h a", "-1 redis://h a", "0 redis://h a", " 41 redis://h a"} {
		if got := ParseHeld(other); len(got) != 0 {
			t.Errorf("%q is read as %+v", other, got)
		}
	}
	if got := ParseHeld("garbage\n7 memory: a\nmore of it"); len(got) != 1 || got[0] != (HeldLock{7, "memory:", "a"}) {
		t.Errorf("%+v", got)
	}
}
