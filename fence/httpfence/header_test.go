package httpfence_test

import (
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/httpfence"
)

const leaseID = "0123456789abcdef0123456789abcdef"

// malformed are invalid values of the header field.
var malformed = []string{
	"", " ", "-1", "0", "-0", "+1", "1.0", "1e3", "0x10", "01", "007", "1_000", "1,000",
	"9223372036854775808", "18446744073709551616", strings.Repeat("9", 400),
	"1, 2", "1 2", "1;2", `"1"`, ":MQ==:", "?1", "one", "١", "1\x00", "1 ", " 1", "1\t",
	"1;", "1; ", "1;lease", "1;lease=", `1;lease=""`, `1;lease="` + leaseID, `1;lease=` + leaseID, `1;lease="` + leaseID + `";`,
	`1;lease="` + strings.ToUpper(leaseID) + `"`, `1;lease="` + leaseID[1:] + `"`, `1;lease="` + leaseID + `0"`,
	`1;Lease="` + leaseID + `"`, `1;owner="` + leaseID + `"`, `1;lease="` + leaseID + `";lease="` + leaseID + `"`,
	`1 ;lease="` + leaseID + `"`, `1;lease ="` + leaseID + `"`, `1;lease="` + leaseID + `", 2`, `;lease="` + leaseID + `"`,
}

func TestParseHeader(t *testing.T) {
	for value, want := range map[string]fence.Claim{
		"1":                   fence.NewClaim(1, ""),
		"10":                  fence.NewClaim(10, ""),
		"9223372036854775807": fence.NewClaim(fence.MaxToken, ""),
		`1795247753125910;lease="` + leaseID + `"`:   fence.NewClaim(1795247753125910, leaseID),
		`1795247753125910;  lease="` + leaseID + `"`: fence.NewClaim(1795247753125910, leaseID),
	} {
		if got, err := httpfence.ParseHeader(value); err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", value, got, err, want)
		}
	}
	for _, value := range malformed {
		if got, err := httpfence.ParseHeader(value); err == nil || got != nil {
			t.Errorf("%q: got %v, want an error", value, got)
		}
	}
}

// FuzzParseHeader checks that an accepted value has one meaning, and is formatted as itself.
func FuzzParseHeader(f *testing.F) {
	for _, value := range malformed {
		f.Add(value)
	}
	f.Add("9223372036854775807")
	f.Add(`1795247753125910; lease="` + leaseID + `"`)
	f.Fuzz(func(t *testing.T, value string) {
		c, err := httpfence.ParseHeader(value)
		if err != nil {
			return
		}
		if c.Token() == 0 || c.Token() > fence.MaxToken || (c.ID() != "" && !c.ID().Valid()) {
			t.Fatalf("%q is accepted as %v", value, c)
		}
		if normal := httpfence.FormatHeader(c); normal != strings.ReplaceAll(value, " ", "") {
			t.Fatalf("%q is read as %q", value, normal)
		}
	})
}
