package enginetest_test

import (
	"regexp"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
)

var everything = driver.Capabilities{Shared: true, Semaphore: true, Queue: true}

// harness returns a harness for the model with the given fault.
func harness(fault string, caps driver.Capabilities, handOff bool) enginetest.Harness {
	return enginetest.Harness{
		Open: func(testing.TB) driver.Engine {
			s := newStore(fault, caps)
			s.handOff = handOff
			return &engine{store: s}
		},
		Join: func(_ testing.TB, e driver.Engine) driver.Engine {
			return &engine{store: e.(*engine).store}
		},
		Unit:   time.Second,
		Bubble: synctest.Test,
	}
}

// TestModel checks that a right engine passes, with and without each
// capability, and whether waiters take the lock or are handed it.
func TestModel(t *testing.T) {
	t.Run("everything", func(t *testing.T) { enginetest.Run(t, harness("", everything, false)) })
	t.Run("hand-off", func(t *testing.T) { enginetest.Run(t, harness("", everything, true)) })
	t.Run("nothing", func(t *testing.T) { enginetest.Run(t, harness("", driver.Capabilities{}, false)) })
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

// fails reports whether f fails the testing.TB it is given or panics. It
// waits for the goroutine that runs f, which a fatal failure ends.
func fails(t *testing.T, f func(testing.TB)) bool {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if recover() != nil {
				r.failed.Store(true)
			}
		}()
		f(r)
	}()
	<-done
	return r.failed.Load()
}

// A recorder remembers a failure and keeps it from the test.
type recorder struct {
	testing.TB
	failed atomic.Bool
}

func (r *recorder) Errorf(string, ...any) { r.failed.Store(true) }
func (r *recorder) Fatalf(string, ...any) { r.failed.Store(true); runtime.Goexit() }

// TestSuiteCatchesMutants checks the suite itself: an engine with one fault
// must fail exactly the requirements that name it.
func TestSuiteCatchesMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.fault, func(t *testing.T) {
			caps := everything
			if m.plain {
				caps = driver.Capabilities{}
			}
			got := failing(t, harness(m.fault, caps, false))
			slices.Sort(got)
			slices.Sort(m.want)
			if !slices.Equal(got, m.want) {
				t.Errorf("failing requirements:\n got %q\nwant %q", got, m.want)
			}
		})
	}
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
			t.Errorf("a mutant is to fail %s, which is no requirement", r)
		}
	}
}
