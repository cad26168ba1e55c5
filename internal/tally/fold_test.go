package tally_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-locks/holdfast/internal/tally"
)

func TestFold(t *testing.T) {
	tests := map[string]string{
		"":                                     "",
		"nightly-report":                       "nightly-report",
		"orders/42":                            "orders/*",
		"orders/42/lines/7":                    "orders/*/lines/*",
		"order42":                              "order*",
		"42":                                   "*",
		"заказ/42":                             "заказ/*",
		"orders/٤٢":                            "orders/*",
		"7f9c24e8-3b12-4fef-91e0-2d6a9d0cbe51": "*",
		"user-7F9C24E8-3B12-4FEF-91E0-2D6A9D0CBE51/mail": "user-*/mail",
		"deadbeef-dead-beef-dead-beefdeadbeef-0":         "*-*", // a UUID without a number
		"report/2026-11-22":                              "report/*",
		"report/2026-11-22T17:30:00Z":                    "report/*",
		"report/2026-11-22T17:30:00.123456789+02:00/a":   "report/*/a",
		"report/2026-11-22 17:30":                        "report/*",
		"report/2026-11-22-eu":                           "report/*-eu",
		"report/2026-11-22T17":                           "report/*-*-*T*", // not a known form of a time
		"report/20261122":                                "report/*",
		"report/2026/11/22":                              "report/*/*/*",
		"build/9f86d081884c7d65":                         "build/*",
		"build/9F86D081":                                 "build/*",
		"build/9f86d08":                                  "build/*f*d*", // too short for a hash
		"a decade, a facade":                             "a decade, a facade",
		"deadbeef/1":                                     "deadbeef/*", // may be a word
		"9f86d081884zebra":                               "*f*d*zebra",
		"upload/01ARZ3NDEKTSV4RRFFQ69G5FAV":              "upload/*",            // a ULID
		"abcdefghijklmnopqr1":                            "abcdefghijklmnopqr*", // 19 characters
		"v2":                                             "v*",
		"10.0.0.1:6379":                                  "*.*.*.*:*",
		"a\xffb1":                                        "a\xffb*",
	}
	for name, want := range tests {
		if got := tally.Fold(name); got != want {
			t.Errorf("Fold(%q) = %q, want %q", name, got, want)
		}
	}
}

// FuzzFold checks that a folded name has no digit and does not change when it is folded again, and
// that names that differ only in the digits of numbers belong to one family.
func FuzzFold(f *testing.F) {
	for _, name := range []string{
		"orders/42", "7f9c24e8-3b12-4fef-91e0-2d6a9d0cbe51", "2026-11-22T17:30:00Z", "2026-11-22T17:30-02:00", "9f86d081884c7d65", "a٤", "\xff9", "2026-11-22T1", "*1*",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		folded := tally.Fold(name)
		if strings.ContainsFunc(folded, unicode.IsDigit) {
			t.Errorf("Fold(%q) = %q has a digit", name, folded)
		}
		if len(folded) > len(name) {
			t.Errorf("Fold(%q) = %q is longer", name, folded)
		}
		if utf8.ValidString(name) && !utf8.ValidString(folded) {
			t.Errorf("Fold(%q) = %q is not UTF-8", name, folded)
		}
		if again := tally.Fold(folded); again != folded {
			t.Errorf("Fold(%q) = %q, and folded again %q", name, folded, again)
		}
		other := strings.Map(func(r rune) rune {
			if '0' <= r && r <= '9' {
				return '0' + (r-'0'+1)%10
			}
			return r
		}, name)
		if utf8.ValidString(name) && tally.Fold(other) != folded {
			t.Errorf("Fold(%q) = %q, but of its sibling %q it is %q", name, folded, other, tally.Fold(other))
		}
	})
}
