//go:build faults

package faults

import (
	"flag"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	only    = flag.String("only", "", "try the fault of this name only")
	changed = flag.String("changed", "", "try the faults of packages that changed since this `commit` only")
	most    = flag.Duration("for", 0, "begin no fault after this time, and try them in random order")
)

// TestFaults puts each fault into the product and runs the tests that must find it. The product
// must compile, and each test must fail with the fault and pass without it. -v shows their output.
func TestFaults(t *testing.T) {
	root := repository(t)
	sound := sound{root: root, dir: t.TempDir(), binaries: map[string]string{}, tried: map[Finder]bool{}}
	chosen, began, tried := choose(t, root), time.Now(), 0
	for _, f := range chosen {
		if *most > 0 && time.Since(began) > *most {
			break
		}
		tried++
		t.Run(f.Name, func(t *testing.T) {
			for _, finder := range f.FoundBy {
				sound.passes(t, finder)
			}
			f.isFound(t, root)
		})
	}
	t.Logf("%d of %d faults tried", tried, len(chosen))
}

// choose returns the faults that the flags select.
func choose(t *testing.T, root string) []Fault {
	all, err := All(root)
	if err != nil {
		t.Fatal(err)
	}
	if *only != "" {
		all = slices.DeleteFunc(all, func(f Fault) bool { return f.Name != *only })
		if len(all) == 0 {
			t.Fatalf("there is no fault %q", *only)
		}
	}
	if *changed != "" {
		dirs := changedDirs(t, root)
		all = slices.DeleteFunc(all, func(f Fault) bool { return !dirs[filepath.Dir(f.File)] && !dirs[f.Pkg] })
	}
	if *most > 0 {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return all
}

// changedDirs returns the folders with files other than pages that changed since the commit.
func changedDirs(t *testing.T, root string) map[string]bool {
	cmd := exec.Command("git", "diff", "--name-only", *changed)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git diff --name-only %s: %v: which commit is before the change? -changed \"\" tries the faults of all packages", *changed, err)
	}
	dirs := map[string]bool{}
	for file := range strings.Lines(string(out)) {
		if file = strings.TrimSpace(file); filepath.Ext(file) != ".md" {
			dirs[filepath.Dir(file)] = true
		}
	}
	return dirs
}

// isFound fails t unless every finder fails by the fault.
func (f Fault) isFound(t *testing.T, root string) {
	dir := t.TempDir()
	overlay, err := f.overlay(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	binaries := map[string]string{}
	for _, pkg := range f.dirs() {
		if binaries[pkg], err = build(root, pkg, overlay, dir); err != nil {
			t.Fatal(err)
		}
	}
	limit := finderLimit
	if f.Hang {
		limit = hangLimit
	}
	for _, finder := range f.FoundBy {
		began := time.Now()
		v, output := finder.run(binaries[finder.Dir], root, overlay, limit)
		if v == failed || v == hung && f.Hang || v == crashed && f.Crash != "" && strings.Contains(output, "\npanic: "+f.Crash) {
			t.Logf("%s has found it: it %s after %s\n%s", finder, v, time.Since(began).Round(time.Millisecond), output)
			continue
		}
		t.Errorf("%s does not find it: it %s\n%s", finder, v, output)
	}
}

// sound is the product without a fault.
type sound struct {
	root, dir string
	binaries  map[string]string // by directory
	tried     map[Finder]bool
}

// passes fails t unless the test passes. Each test is run once.
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
