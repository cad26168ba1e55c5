package archtest

import (
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/enginetest"
)

// invariantRow matches the rows of the invariants in ARCHITECTURE.md. shownBy matches the tests and
// requirements in a row: capitalized words in code style.
var (
	invariantRow = regexp.MustCompile(`(?m)^\| I\d+ \|.*$`)
	shownBy      = regexp.MustCompile("`([A-Z][A-Za-z0-9]{8,})`")
)

func TestArchitectureNamesTestsThatExist(t *testing.T) {
	doc := read(t, "ARCHITECTURE.md")
	known := knownCases(t)
	rows := invariantRow.FindAllString(doc, -1)
	if len(rows) != 12 {
		t.Errorf("%d rows of invariants, want 12", len(rows))
	}
	for _, row := range rows {
		cells := strings.Split(row, "|")
		shown := cells[len(cells)-2]
		for _, m := range shownBy.FindAllStringSubmatch(shown, -1) {
			if !known[m[1]] {
				t.Errorf("%s: there is no test and no requirement %s", strings.TrimSpace(cells[1]), m[1])
			}
		}
	}
}

// caseName matches declarations of tests and of the conformance suite's requirements.
var caseName = regexp.MustCompile(`(?m)^(?:func |\s+(?:Name:\s+|\{)")([A-Z][A-Za-z0-9]+)[("]`)

// knownCases returns the names of all tests and requirements.
func knownCases(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for _, m := range caseName.FindAllStringSubmatch(goSources(t, "."), -1) {
		known[m[1]] = true
	}
	return known
}

// aTest matches the name of a test in code style.
var aTest = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]+)`")

// TestGuaranteesNameCasesThatExist checks that every promise of docs/guarantees.md names a test or
// a requirement that exists.
func TestGuaranteesNameCasesThatExist(t *testing.T) {
	doc := read(t, "docs/guarantees.md")
	known, rows := knownCases(t), 0
	for line := range strings.Lines(doc) {
		if !strings.HasPrefix(line, "| ") || strings.HasSuffix(strings.TrimSpace(line), " shown by |") {
			continue
		}
		rows++
		cases := shownBy.FindAllStringSubmatch(line, -1)
		for _, m := range cases {
			if !known[m[1]] {
				t.Errorf("there is no test and no requirement %s", m[1])
			}
		}
		if len(cases) == 0 {
			t.Errorf("no case shows: %s", line)
		}
	}
	if rows < 30 {
		t.Errorf("%d guarantees, want at least 30: is the table read?", rows)
	}
}

// TestInvariantsAreCited checks that the code cites every invariant of ARCHITECTURE.md.
func TestInvariantsAreCited(t *testing.T) {
	sources := goSources(t, ".")
	for _, n := range []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12"} {
		if !regexp.MustCompile(`INVARIANT ` + n + `\b`).MatchString(sources) {
			t.Errorf("no code cites INVARIANT %s", n)
		}
	}
}

// goSources returns the text of all Go, Lua and SQL files below a directory.
func goSources(t *testing.T, below string) string {
	t.Helper()
	var b strings.Builder
	walk(t, below, func(name string) {
		if ext := path.Ext(name); ext == ".go" || ext == ".lua" || ext == ".sql" {
			b.WriteString(read(t, name))
		}
	})
	return b.String()
}

// TestEnglish checks that scripts/english, a part of make lint, finds no problem.
func TestEnglish(t *testing.T) {
	cmd := exec.Command("go", "run", "./scripts/english")
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestEnginesNamesEveryRequirement checks that docs/internals/engines.md names every requirement in
// one of its steps, and no requirement that does not exist.
func TestEnginesNamesEveryRequirement(t *testing.T) {
	doc := read(t, "docs/internals/engines.md")
	named := map[string]bool{}
	for line := range strings.Lines(doc) {
		if strings.HasPrefix(line, "| ") {
			for _, m := range shownBy.FindAllStringSubmatch(line, -1) {
				named[m[1]] = true
			}
		}
	}
	for _, r := range enginetest.Requirements() {
		if !named[r.Name] {
			t.Errorf("docs/internals/engines.md does not say in which step an engine comes to %s", r.Name)
		}
		delete(named, r.Name)
	}
	contract := goSources(t, "driver") // the page also names flags and interfaces
	for name := range named {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(contract) {
			t.Errorf("docs/internals/engines.md names %s, which is neither a requirement nor in package driver", name)
		}
	}
}
