// Package enginetest is the conformance suite of package driver. An engine that passes it follows
// every "must" of the contract that can be observed from outside. For an engine that fails, the
// suite reports the rule that the engine broke.
//
//	func TestConformance(t *testing.T) {
//		enginetest.Run(t, enginetest.Harness{
//			Open: func(tb testing.TB) driver.Engine { ... },
//			Unit: 300 * time.Millisecond,
//		})
//	}
//
// In real time the suite takes about 130 units, and another 12 for an engine with history. In
// virtual time it takes no time.
//
// The requirements are data. Each names one rule and its invariant in ARCHITECTURE.md. So the suite
// itself can be tested: an engine with one known fault must fail exactly the requirements that name
// the fault.
package enginetest

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Harness describes to the suite how to open an engine.
type Harness struct {
	// Open returns an engine on its own empty store. Run calls it once, and once per requirement.
	// The suite closes the engine before any cleanup that Open registered.
	Open func(testing.TB) driver.Engine

	// Join returns another engine on the store of the given engine, like that of another process.
	// The suite closes it. If Join is nil, the suite leaves out the requirements that need two
	// engines on a store.
	Join func(testing.TB, driver.Engine) driver.Engine

	// Unit is the suite's unit of time, at least 20 ms. It must be long compared to a
	// round trip to the store and to the pauses of the machine: a few hundred
	// milliseconds in real time.
	Unit time.Duration

	// Bubble runs a requirement in virtual time, as synctest.Test does.
	// Nil means real time.
	Bubble func(*testing.T, func(*testing.T))
}

// A Requirement is one rule of the contract.
type Requirement struct {
	Name      string // what an engine that follows the rule does
	Invariant string // the rule's invariant, as "I4"; "" if none

	// Needs reports whether the rule applies to the engine of t; nil means that it
	// applies to every engine.
	Needs func(t *T) bool

	// Run fails t if the engine breaks the rule.
	Run func(t *T)

	Explanation string // the rule that a failing engine breaks, in one line
}

// Run checks the engine of h against every requirement that applies to it, each as a subtest on its
// own store, and logs those that do not apply.
func Run(t *testing.T, h Harness) { runSome(t, h, func(Requirement) bool { return true }) }

// runSome is Run for the requirements for which wanted returns true.
func runSome(t *testing.T, h Harness, wanted func(Requirement) bool) {
	var applies map[string]bool
	h.bubble(t, func(t *testing.T) { applies = Applicable(t, h) })
	for _, r := range Requirements() {
		switch {
		case !wanted(r):
		case !applies[r.Name]:
			t.Logf("%s does not apply to this engine", r.Name)
		default:
			t.Run(r.Name, func(t *testing.T) {
				h.bubble(t, func(t *testing.T) { r.Check(t, h) })
			})
		}
	}
}

// bubble runs f in the time of h.
func (h Harness) bubble(t *testing.T, f func(*testing.T)) {
	if h.Bubble == nil {
		f(t)
		return
	}
	h.Bubble(t, f)
}

// Applicable opens an engine of h, returns the names of the requirements that
// apply to it, and closes it.
func Applicable(tb testing.TB, h Harness) map[string]bool {
	t := newT(tb, h)
	names := map[string]bool{}
	for _, r := range Requirements() {
		if r.Needs == nil || r.Needs(t) {
			names[r.Name] = true
		}
	}
	if err := t.Engine.Close(); err != nil { // before the engines of the requirements are closed
		tb.Errorf("Close: %v", err)
	}
	return names
}

// Check opens an engine of h and fails tb if the engine breaks the requirement. The caller
// guarantees that the requirement applies to the engine.
func (r Requirement) Check(tb testing.TB, h Harness) {
	tb.Helper()
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the rule that is broken: %s", r.rule())
		}
	})
	r.Run(newT(tb, h))
}

// rule returns the explanation with its invariant.
func (r Requirement) rule() string {
	if r.Invariant == "" {
		return r.Explanation
	}
	return r.Explanation + " (INVARIANT " + r.Invariant + ")"
}

// Requirements returns all requirements, in the order of the contract.
func Requirements() []Requirement {
	return slices.Concat(
		acquireRequirements(),
		repeatRequirements(),
		tokenRequirements(),
		nameRequirements(),
		extendRequirements(),
		releaseRequirements(),
		keepRequirements(),
		inspectRequirements(),
		sinceRequirements(),
		engineRequirements(),
		capabilityRequirements(),
		sharedRequirements(),
		semaphoreRequirements(),
		queueRequirements(),
		handOverRequirements(),
		refreshRequirements(),
		watchRequirements(),
		downgradeRequirements(),
		acquireAllRequirements(),
		completeRequirements(),
		onceRequirements(),
		listRecordsRequirements(),
		vaultRequirements(),
		depositRequirements(),
		redeemRequirements(),
		revokeRequirements(),
		pruneRequirements(),
		listRequirements(),
		breakRequirements(),
		lossRequirements(),
		historyRequirements(),
	)
}
