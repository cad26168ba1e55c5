package oncehttp_test

import (
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/oncehttp"
)

// malformed are values of the header field that are not valid keys.
var malformed = []string{
	"", " ", "\t", `""`, `"`, `"a`, `a"`, `a"b`, `"a"b`, `"a" b`, `"a""b"`, `"a", "b"`, "a, b", "a,b", "a b", "a\tb",
	`"a";b`, `"a";b="c"`, "a;b", "a;", `"a" ;b`, `a\b`, `"a\b"`, `"a\`, `"a\"`, `"\`, `"\"`, `"\x"`,
	"a\x00", "\x7f", "\"a\x00\"", "\"a\x7f\"", "\"a\tb\"", "\"a\nb\"", "ключ", `"ключ"`, "\xff", "\"\xff\"", "a\u00a0b",
	strings.Repeat("x", oncehttp.MaxKey+1), `"` + strings.Repeat("x", oncehttp.MaxKey+1) + `"`, `"` + strings.Repeat(`\"`, oncehttp.MaxKey+1) + `"`,
}

func TestParseKey(t *testing.T) {
	longest := strings.Repeat("x", oncehttp.MaxKey)
	for value, want := range map[string]string{
		key:                      key,
		`"` + key + `"`:          key,
		"  " + key + "\t":        key,
		` "` + key + `" `:        key,
		"x":                      "x",
		`"x"`:                    "x",
		`" x "`:                  " x ",
		`"a\"b\\c"`:              `a"b\c`,
		`"a, b; c"`:              "a, b; c",
		":MQ==:":                 ":MQ==:",
		"?1":                     "?1",
		"42":                     "42",
		"order/42+a=b~(c)[d]{e}": "order/42+a=b~(c)[d]{e}",
		longest:                  longest,
		`"` + longest + `"`:      longest,
		`"` + strings.Repeat(`\\`, oncehttp.MaxKey) + `"`: strings.Repeat(`\`, oncehttp.MaxKey),
	} {
		if got, err := oncehttp.ParseKey(value); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", value, got, err, want)
		}
	}
	for _, value := range malformed {
		if got, err := oncehttp.ParseKey(value); err == nil || got != "" {
			t.Errorf("%q: %q, want an error", value, got)
		}
	}
}

// FuzzParseKey checks that a parsed key has 1 to MaxKey printable ASCII characters, and that
// FormatKey and ParseKey are inverse.
func FuzzParseKey(f *testing.F) {
	for _, value := range append(malformed, key, `"`+key+`"`, `"a\"b\\c"`, " x ") {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		parsed, err := oncehttp.ParseKey(value)
		if err != nil {
			if parsed != "" || !strings.Contains(err.Error(), oncehttp.Header) {
				t.Fatalf("%q: %q, %v", value, parsed, err)
			}
			return
		}
		if len(parsed) == 0 || len(parsed) > oncehttp.MaxKey || strings.ContainsFunc(parsed, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("%q is read as %q", value, parsed)
		}
		if again, err := oncehttp.ParseKey(oncehttp.FormatKey(parsed)); err != nil || again != parsed {
			t.Fatalf("%q is read as %q, and that as %q, %v", value, parsed, again, err)
		}
		trimmed := strings.Trim(value, " \t")
		if trimmed != parsed && trimmed[0] != '"' {
			t.Fatalf("%q without quotation marks is read as %q", value, parsed)
		}
	})
}
