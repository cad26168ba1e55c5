//go:build mutants

package mutant

import (
	"flag"
	"strings"
	"testing"
	"time"
)

var only = flag.String("only", "", "try the mutant of this name only")

// TestMutants puts each fault into the product and runs the tests that must
// find it: each must compile and fail, and pass without the fault. -v shows
// what they said.
func TestMutants(t *testing.T) {
	sound := sound{root: repository(t), dir: t.TempDir(), binaries: map[string]string{}, tried: map[Finder]bool{}}
	tried := 0
	for _, m := range All() {
		if *only != "" && m.Name != *only {
			continue
		}
		tried++
		t.Run(m.Name, func(t *testing.T) {
			for _, f := range m.FoundBy {
				sound.passes(t, f)
			}
			m.isFound(t, sound.root)
		})
	}
	if tried == 0 {
		t.Fatalf("there is no mutant %q", *only)
	}
	t.Logf("%d mutants", tried)
}

// isFound fails t unless every finder fails by the fault.
func (m Mutant) isFound(t *testing.T, root string) {
	dir := t.TempDir()
	overlay, err := m.overlay(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	binaries := map[string]string{}
	for _, pkg := range m.dirs() {
		if binaries[pkg], err = build(root, pkg, overlay, dir); err != nil {
			t.Fatal(err)
		}
	}
	limit := finderLimit
	if m.Hang {
		limit = hangLimit
	}
	for _, f := range m.FoundBy {
		began := time.Now()
		v, output := f.run(binaries[f.Dir], root, overlay, limit)
		if v == failed || v == hung && m.Hang || v == crashed && m.Crash != "" && strings.Contains(output, "\npanic: "+m.Crash) {
			t.Logf("%s has found it: it %s after %s\n%s", f, v, time.Since(began).Round(time.Millisecond), output)
			continue
		}
		t.Errorf("%s does not find it: it %s\n%s", f, v, output)
	}
}

// sound is the product without a fault.
type sound struct {
	root, dir string
	binaries  map[string]string // by directory
	tried     map[Finder]bool
}

// passes fails t unless the test passes. Each is run once.
func (s *sound) passes(t *testing.T, f Finder) {
	if s.tried[f] {
		return
	}
	s.tried[f] = true
	if s.binaries[f.Dir] == "" {
		binary, err := build(s.root, f.Dir, "", s.dir)
		if err != nil {
			t.Fatal(err)
		}
		s.binaries[f.Dir] = binary
	}
	if v, output := f.run(s.binaries[f.Dir], s.root, "", finderLimit); v != passed {
		t.Fatalf("%s has to pass without a fault: it %s\n%s", f, v, output)
	}
}
