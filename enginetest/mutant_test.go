package enginetest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/faketest"
)

var everything = driver.Capabilities{
	Shared: true, Semaphore: true, Queue: true, Break: true, Losses: true,
	AcquireAll: true, Records: true, OneTime: true, List: true, Diagnose: true,
}

// remembering contains everything and history.
var remembering = func() driver.Capabilities {
	c := everything
	c.History = true
	return c
}()

// bare contains the capabilities of an engine without modes and queue.
var bare = driver.Capabilities{AcquireAll: true, OneTime: true}

// harness returns a harness for the model with the given fault.
func harness(fault string, caps driver.Capabilities) enginetest.Harness {
	return enginetest.Harness{
		Open: func(testing.TB) driver.Engine {
			e := &engine{store: newStore(fault, caps)}
			e.tokenless = caps == bare
			if fault == "optional methods are missing" {
				return plain{e}
			}
			return e
		},
		Join: func(_ testing.TB, e driver.Engine) driver.Engine {
			if p, ok := e.(plain); ok {
				return plain{&engine{store: p.Engine.(*engine).store}}
			}
			return &engine{store: e.(*engine).store}
		},
		Unit:   time.Second,
		Bubble: synctest.Test,
	}
}

// modelMaxTTL is longer than all TTLs in the suite, except in the tests of MaxTTL.
const modelMaxTTL = 24 * time.Hour

// plain hides the optional methods of an engine.
type plain struct{ driver.Engine }

// TestModel checks that correct engines pass, with every choice that the contract allows.
func TestModel(t *testing.T) {
	for _, variant := range []struct {
		name string
		caps driver.Capabilities
		set  func(*engine)
	}{
		{"plain", remembering, func(*engine) {}},
		{"eager and tidy", remembering, func(e *engine) { e.eager, e.tidy = true, true }},
		{"chatty and narrow", remembering, func(e *engine) { e.chatty, e.narrow = true, true }},
		{"no capabilities", driver.Capabilities{}, func(*engine) {}},
		{"no modes and no one-time tokens", bare, func(*engine) {}},
		{"short leases only", driver.Capabilities{Shared: true, MaxTTL: modelMaxTTL}, func(*engine) {}},
	} {
		t.Run(variant.name, func(t *testing.T) {
			h := harness("", variant.caps)
			open := h.Open
			h.Open = func(tb testing.TB) driver.Engine {
				e := open(tb)
				variant.set(e.(*engine))
				return e
			}
			enginetest.Run(t, h)
		})
	}
	t.Run("only exclusive locks", func(t *testing.T) {
		h := harness("", driver.Capabilities{})
		h.Open = func(testing.TB) driver.Engine { return plain{&engine{store: newStore("", driver.Capabilities{})}} }
		h.Join = nil
		enginetest.Run(t, h)
	})
}

// TestModelBehindForward checks that correct engines pass behind wrappers.
func TestModelBehindForward(t *testing.T) {
	for name, caps := range map[string]driver.Capabilities{
		"everything": remembering, "no modes and no one-time tokens": bare, "nothing": {}, "short leases only": {Shared: true, MaxTTL: modelMaxTTL},
	} {
		t.Run(name, func(t *testing.T) { enginetest.RunForwarded(t, harness("", caps)) })
	}
}

// TestSuiteIsQuick checks the duration in real time that the documentation of the suite promises.
// It counts only the waiting, because the rest depends on the store.
func TestSuiteIsQuick(t *testing.T) {
	suiteIsQuick(t, everything, 131)
	suiteIsQuick(t, remembering, 143)
}

func suiteIsQuick(t *testing.T, caps driver.Capabilities, units time.Duration) {
	h := harness("", caps)
	var total time.Duration
	h.Bubble = func(t *testing.T, f func(*testing.T)) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			f(t)
			total += time.Since(start)
		})
	}
	enginetest.Run(t, h)
	// One requirement waits for TombstoneTTL in virtual time, and for 4 units in real time. Others
	// wait for RedeemGrace, BreakMemory and HistoryMemory, only in virtual time.
	total += 4*h.Unit - (driver.TombstoneTTL - time.Second) - (driver.RedeemGrace + time.Second) - driver.BreakMemory
	if caps.History {
		total -= 2 * driver.HistoryMemory
	}
	t.Logf("the suite waits for %s", total)
	if limit := units * h.Unit; total > limit {
		t.Errorf("the suite waits for %s, want %s at most", total, limit)
	}
}

// failing returns the requirements that an engine of h fails.
func failing(t *testing.T, h enginetest.Harness) []string {
	var applies map[string]bool
	synctest.Test(t, func(t *testing.T) {
		fails(t, func(tb testing.TB) { applies = enginetest.Applicable(tb, h) })
	})
	var names []string
	for _, r := range enginetest.Requirements() {
		if !applies[r.Name] {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			if fails(t, func(tb testing.TB) { r.Check(tb, h) }) {
				names = append(names, r.Name)
			}
		})
	}
	return names
}

// fails reports whether f fails its testing.TB or panics.
func fails(t *testing.T, f func(testing.TB)) bool {
	r := faketest.New(t)
	r.Do(func() { f(r) })
	return r.Failed()
}

// A mutant is a model with one fault, and exactly the requirements that it fails.
type mutant struct {
	fault string
	plain bool // without capabilities
	short bool // with a MaxTTL
	past  bool // with history
	bare  bool // with the capabilities of bare
	want  []string
}

// mutants contains the mutants of all faults. Each file of mutants has the name of the model's file
// that contains their faults.
var mutants = slices.Concat(
	storeMutants,
	acquireMutants,
	leaseMutants,
	queueMutants,
	acquireAllMutants,
	recordMutants,
	listRecordsMutants,
	vaultMutants,
	pruneMutants,
	inspectMutants,
	sinceMutants,
	breakMutants,
	historyMutants,
	capabilityMutants,
)

// TestSuiteCatchesMutants checks the suite itself: an engine with one fault must fail exactly the
// requirements that name the fault.
func TestSuiteCatchesMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.fault, func(t *testing.T) {
			caps := everything
			if m.plain {
				caps = driver.Capabilities{}
			}
			if m.past {
				caps = remembering
			}
			if m.bare {
				caps = bare
			}
			if m.short {
				caps.MaxTTL = modelMaxTTL
			}
			got := failing(t, harness(m.fault, caps))
			slices.Sort(got)
			slices.Sort(m.want)
			if !slices.Equal(got, m.want) {
				t.Errorf("failing requirements:\n got %q\nwant %q", got, m.want)
			}
		})
	}
}

// TestEveryFaultIsTried checks that each fault of the model has a mutant. Otherwise its code would
// never run.
func TestEveryFaultIsTried(t *testing.T) {
	files, err := filepath.Glob("model*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of the model: %v", err)
	}
	found := 0
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for fault := range faults(tree) {
			found++
			if !slices.ContainsFunc(mutants, func(m mutant) bool { return names(fault, m.fault) }) {
				t.Errorf("%s: no mutant has the fault %q", file, fault)
			}
		}
	}
	if found < len(mutants)/2 {
		t.Errorf("found %d faults in the model of %d mutants: this test does not see them", found, len(mutants))
	}
}

// names reports whether a text with which the model compares stands for fault. A text with a space
// at one end is only a part, next to the name of a method.
func names(text, fault string) bool {
	return text == fault || strings.HasPrefix(text, " ") && strings.HasSuffix(fault, text) ||
		strings.HasSuffix(text, " ") && strings.HasPrefix(fault, text)
}

// faults yields the texts with which tree compares a store's fault.
func faults(tree *ast.File) iter.Seq[string] {
	return func(yield func(string) bool) {
		for n := range ast.Preorder(tree) {
			var compared []ast.Expr
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if isFault(n.X) {
					compared = []ast.Expr{n.Y}
				}
			case *ast.SwitchStmt:
				if isFault(n.Tag) {
					for _, clause := range n.Body.List {
						compared = append(compared, clause.(*ast.CaseClause).List...)
					}
				}
			}
			for _, e := range compared {
				for n := range ast.Preorder(e) {
					if text, err := literal(n); err == nil && text != "" && !yield(text) {
						return
					}
				}
			}
		}
	}
}

// isFault reports whether e is the field fault.
func isFault(e ast.Expr) bool {
	selector, ok := e.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "fault"
}

// literal returns the value of a string literal.
func literal(n ast.Node) (string, error) {
	if l, ok := n.(*ast.BasicLit); ok {
		return strconv.Unquote(l.Value)
	}
	return "", strconv.ErrSyntax
}

// TestRequirements checks the suite as data.
func TestRequirements(t *testing.T) {
	name := regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	invariant := regexp.MustCompile(`^(I([1-9]|1[0-2]))?$`)
	caught := map[string]bool{}
	for _, m := range mutants {
		if len(m.want) == 0 {
			t.Errorf("mutant %q fails nothing", m.fault)
		}
		for _, r := range m.want {
			caught[r] = true
		}
	}
	seen := map[string]bool{}
	for _, r := range enginetest.Requirements() {
		if !name.MatchString(r.Name) || seen[r.Name] {
			t.Errorf("name %q: bad or used twice", r.Name)
		}
		seen[r.Name] = true
		if len(r.Explanation) < 30 || regexp.MustCompile(`\n|\.$`).MatchString(r.Explanation) {
			t.Errorf("%s: explanation %q, want one line without a full stop", r.Name, r.Explanation)
		}
		if !invariant.MatchString(r.Invariant) {
			t.Errorf("%s: invariant %q", r.Name, r.Invariant)
		}
		if !caught[r.Name] {
			t.Errorf("%s: no mutant fails it", r.Name)
		}
	}
	for r := range caught {
		if !seen[r] {
			t.Errorf("a mutant is to fail %s, which is not a requirement", r)
		}
	}
}
