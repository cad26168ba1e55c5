package archtest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// packageHeadings are the headings with which the documentation of a package begins, in this order,
// if programs use the package.
var packageHeadings = []string{"What", "Example", "Guarantees", "What is not promised", "Clocks", "Fencing", "Errors", "Testing"}

// withDocs maps each package that programs use to the headings that do not apply to it.
var withDocs = map[string][]string{
	".":               nil,
	"dashboard":       {"Clocks", "Fencing"},
	"fence":           {"Fencing"},
	"fence/httpfence": {"Fencing"},
	"fence/sqlfence":  {"Fencing"},
	"goredislock":     nil,
	"holdfasttest":    {"Fencing", "Testing"},
	"httplock":        nil,
	"httplock/server": nil,
	"memlock":         nil,
	"observe":         {"Fencing", "Errors", "Testing"},
	"oncehttp":        nil,
	"onetime":         {"Fencing"},
	"otellock":        nil,
	"pglock":          nil,
	"promlock":        nil,
	"quorumlock":      nil,
	"redislock":       nil,
	"sqlitelock":      nil,
	"stores":          {"Clocks", "Fencing"},
}

// withoutDocs are prefixes of packages that programs do not use: they are for builders of engines
// or other parts, or internal.
var withoutDocs = []string{"driver", "lockinfo", "enginetest", "httplock/server/caller", "memlock/member", "redislock/member", "rediscore", "internal/tally", "wire", "cmd/", "examples", "systest", "scripts/", "internal/"}

var packageHeading = regexp.MustCompile(`(?m)^// # (.*)$`)

// TestPackageHeadings checks that the documentation of all packages has the same headings.
func TestPackageHeadings(t *testing.T) {
	for _, p := range list(t) {
		dir := relative(p.ImportPath)
		_, with := withDocs[dir]
		without := strings.Contains(dir, "/internal/") || slices.ContainsFunc(withoutDocs, func(begin string) bool { return strings.HasPrefix(dir, begin) })
		if with == without {
			t.Errorf("%s: say in withDocs or in withoutDocs whether programs use it", dir)
		}
	}
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
