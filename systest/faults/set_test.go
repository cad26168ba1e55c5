package faults

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/enginetest"
)

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

// TestSetFits checks that every fault still fits the product, and that the tests that must find it
// exist.
func TestSetFits(t *testing.T) {
	root := repository(t)
	all, err := All(root)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]map[string]bool{}
	names, isName := map[string]bool{}, regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`)
	for _, f := range all {
		if !isName.MatchString(f.Name) || names[f.Name] {
			t.Errorf("fault %q: want a name of its own, words joined by '-'", f.Name)
		}
		names[f.Name] = true
		if f.Invariant != "" && !regexp.MustCompile(`^I([1-9]|1[0-2])$`).MatchString(f.Invariant) {
			t.Errorf("fault %s: invariant %q", f.Name, f.Invariant)
		}
		if !strings.HasSuffix(f.Breaks, ".") || strings.ContainsAny(f.Breaks, "|\n") {
			t.Errorf("fault %s: want one sentence on what it breaks, not %q", f.Name, f.Breaks)
		}
		if text, err := f.apply(root); err != nil {
			t.Error(err)
		} else if original, _ := os.ReadFile(filepath.Join(root, f.File)); text == string(original) {
			t.Errorf("fault %s changes nothing", f.Name)
		}
		if len(f.FoundBy) == 0 {
			t.Errorf("fault %s: no test is to find it", f.Name)
		}
		for _, finder := range f.FoundBy {
			if tests[finder.Dir] == nil {
				tests[finder.Dir] = testsOf(t, filepath.Join(root, finder.Dir))
			}
			finder.exists(t, tests[finder.Dir])
		}
	}
	if least := 20; len(all) < least {
		t.Errorf("%d faults, want %d at least", len(all), least)
	}
}

// TestList prints all faults as a Markdown table, by invariant, for go test -v.
func TestList(t *testing.T) {
	all, err := All(repository(t))
	if err != nil {
		t.Fatal(err)
	}
	number := func(f Fault) int { // I2 comes before I10, and faults without an invariant come first
		n, _ := strconv.Atoi(strings.TrimPrefix(f.Invariant, "I"))
		return n
	}
	slices.SortStableFunc(all, func(a, b Fault) int { return cmp.Compare(number(a), number(b)) })
	fmt.Fprint(t.Output(), "| invariant | fault | breaks | found by |\n|---|---|---|---|\n")
	for _, f := range all {
		finders := make([]string, 0, len(f.FoundBy))
		for _, finder := range f.FoundBy {
			finders = append(finders, finder.String())
		}
		fmt.Fprintf(t.Output(), "| %s | %s | %s | %s |\n", f.Invariant, f.Name, f.Breaks, strings.Join(finders, ", "))
	}
}

// exists fails t if there is no such test. Of subtests it checks only requirements of enginetest;
// others turn out to be missing when they are run.
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

// TestJudge checks that judge recognizes each outcome of a test by its output.
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
