package archtest

import (
	"regexp"
	"slices"
	"testing"
)

// packageHeadings are those that the documentation of a package begins with that
// programs use, in this order.
var packageHeadings = []string{"What", "Example", "Guarantees", "What is not promised", "Clocks", "Fencing", "Errors", "Testing"}

// withDocs are the packages that programs use, each with the headings that say nothing
// about it.
var withDocs = map[string][]string{
	".":               nil,
	"fence":           {"Fencing"},
	"fence/httpfence": {"Fencing"},
	"fence/sqlfence":  {"Fencing"},
	"holdfasttest":    {"Fencing", "Testing"},
	"memlock":         nil,
	"oncehttp":        nil,
	"onetime":         {"Fencing"},
	"quorumlock":      nil,
	"redislock":       nil,
	"sqlitelock":      nil,
}

var packageHeading = regexp.MustCompile(`(?m)^// # (.*)$`)

// TestPackageHeadings: whoever knows the documentation of one package finds their way in
// that of the others.
func TestPackageHeadings(t *testing.T) {
	for dir, without := range withDocs {
		var got []string
		for _, m := range packageHeading.FindAllStringSubmatch(read(t, dir+"/doc.go"), -1) {
			got = append(got, m[1])
		}
		want := slices.DeleteFunc(slices.Clone(packageHeadings), func(h string) bool { return slices.Contains(without, h) })
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s/doc.go has the headings %q, want it to begin with %q", dir, got, want)
		}
	}
}
