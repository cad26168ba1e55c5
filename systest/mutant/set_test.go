package mutant

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/enginetest"
)

var update = flag.Bool("update", false, "write the table in docs/track-record.md")

// repository returns the root of this repository.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.work")); err != nil {
		t.Fatalf("the root of the repository is not where it was: %v", err)
	}
	return root
}

// TestSetFits checks that every fault still has its place in the product, and
// that the tests that are to find it exist.
func TestSetFits(t *testing.T) {
	root, all := repository(t), All()
	tests := map[string]map[string]bool{}
	names, isName := map[string]bool{}, regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`)
	for _, m := range all {
		if !isName.MatchString(m.Name) || names[m.Name] {
			t.Errorf("mutant %q: want a name of its own, words joined by '-'", m.Name)
		}
		names[m.Name] = true
		if m.Invariant != "" && !regexp.MustCompile(`^I([1-9]|1[0-2])$`).MatchString(m.Invariant) {
			t.Errorf("mutant %s: invariant %q", m.Name, m.Invariant)
		}
		if !strings.HasSuffix(m.Breaks, ".") || strings.ContainsAny(m.Breaks, "|\n") {
			t.Errorf("mutant %s: want one sentence on what it breaks, not %q", m.Name, m.Breaks)
		}
		if text, err := m.apply(root); err != nil {
			t.Error(err)
		} else if original, _ := os.ReadFile(filepath.Join(root, m.File)); text == string(original) {
			t.Errorf("mutant %s changes nothing", m.Name)
		}
		if len(m.FoundBy) == 0 {
			t.Errorf("mutant %s: no test is to find it", m.Name)
		}
		for _, f := range m.FoundBy {
			if tests[f.Dir] == nil {
				tests[f.Dir] = testsOf(t, filepath.Join(root, f.Dir))
			}
			f.exists(t, tests[f.Dir])
		}
	}
	if least := 20; len(all) < least {
		t.Errorf("%d mutants, want %d at least", len(all), least)
	}
}

// exists fails t if there is no such test. Of subtests only requirements of
// enginetest are looked up: others are found missing when they are run.
func (f Finder) exists(t *testing.T, tests map[string]bool) {
	t.Helper()
	name, sub, _ := strings.Cut(f.Test, "/")
	if !tests[name] {
		t.Errorf("%s has no test %s", f.Dir, name)
	}
	if name == "TestConformance" && !slices.ContainsFunc(enginetest.Requirements(), func(r enginetest.Requirement) bool { return r.Name == sub }) {
		t.Errorf("enginetest has no requirement %q", sub)
	}
}

// testsOf returns the names of the tests in a directory.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s (%v)", dir, err)
	}
	tests := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				tests[f.Name.Name] = true
			}
		}
	}
	return tests
}

// TestTrackRecord checks that the page lists exactly the mutants of the set,
// each with the tests that find it.
func TestTrackRecord(t *testing.T) {
	const begin, end = "<!-- the table of the mutants begins -->\n", "<!-- the table of the mutants ends -->"
	path := filepath.Join(repository(t), "docs", "track-record.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no table between %q and %q", path, begin, end)
	}
	want := trackRecord(All())
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	differences(t, table, want)
}

// trackRecord returns the table of the mutants.
func trackRecord(all []Mutant) string {
	var b strings.Builder
	b.WriteString("| mutant | what it breaks | | where | found by |\n|---|---|---|---|---|\n")
	for _, m := range all {
		var finders []string
		for _, f := range m.FoundBy {
			finders = append(finders, "`"+f.String()+"`")
		}
		b.WriteString("| `" + m.Name + "` | " + m.Breaks + " | " + m.Invariant + " | `" + m.File + "` | " + strings.Join(finders, ", ") + " |\n")
	}
	return b.String()
}

// differences reports the rows that only one of two tables has.
func differences(t *testing.T, got, want string) {
	t.Helper()
	rows := func(table string) map[string]bool {
		set := map[string]bool{}
		for row := range strings.Lines(table) {
			set[row] = true
		}
		return set
	}
	has, wants := rows(got), rows(want)
	for _, row := range slices.Sorted(maps.Keys(wants)) {
		if !has[row] {
			t.Errorf("the page lacks a row (go test ./mutant -update writes it):\n%s", row)
		}
	}
	for _, row := range slices.Sorted(maps.Keys(has)) {
		if !wants[row] {
			t.Errorf("the page has a row that is not of the set:\n%s", row)
		}
	}
	if !t.Failed() && got != want {
		t.Error("the rows of the page are in another order than the set, or there twice (go test ./mutant -update)")
	}
}

// TestJudge checks how the end of a test is told from its output.
func TestJudge(t *testing.T) {
	wrong := os.ErrInvalid
	f := Finder{".", "TestA/B"}
	for _, c := range []struct {
		name, output string
		err          error
		want         verdict
	}{
		{"pass", "--- PASS: TestA (0.00s)\n    --- PASS: TestA/B (0.00s)\nPASS\n", nil, passed},
		{"fail", "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/B (0.00s)\nFAIL\n", wrong, failed},
		{"another test fails", "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/BC (0.00s)\nFAIL\n", wrong, unclear},
		{"nothing is run", "testing: warning: no tests to run\nPASS\n", nil, unclear},
		{"fail after a pass", "--- PASS: TestA/B (0.00s)\ngoleak: Errors on successful test run\n", wrong, unclear},
		{"skip", "--- SKIP: TestA/B (0.00s)\nPASS\n", nil, unclear},
		{"timeout", "=== RUN   TestA/B\npanic: test timed out after 1s\n", wrong, hung},
		{"all blocked", "--- FAIL: TestA/B (0.00s)\npanic: deadlock: all goroutines in bubble are blocked\n", wrong, hung},
		{"panic", "=== RUN   TestA/B\npanic: no 1\n", wrong, crashed},
		{"panic of another", "=== RUN   TestA/BC\npanic: no 1\n", wrong, unclear},
		{"no such binary", "", wrong, unclear},
	} {
		if got := f.judge(c.output, c.err); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
