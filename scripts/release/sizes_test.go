package main

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestSizes: SUPPORT.md has the size of the program, the number of its modules, the size of
// the image and the time of a start, and none is above its limit. If the program has grown
// by more than a quarter of a MiB, this names the modules that it did not have before.
func TestSizes(t *testing.T) {
	tr := tried(t)
	program := tr.program(t)
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	build, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	modules := 0
	for _, dep := range build.Deps {
		if !isOurs(dep.Path) {
			modules++
		}
	}
	dir := t.TempDir()
	for _, f := range unpacked(t, tr.file(t, "holdfast_"+tr.release.bare()+"_oci.tar")) {
		put(t, filepath.Join(dir, f.name), string(f.data))
	}
	layers, err := imageIn(t, dir, here()).Layers()
	if err != nil {
		t.Fatal(err)
	}
	layer, err := layers[0].Size()
	if err != nil {
		t.Fatal(err)
	}
	const mib = 1 << 20
	for _, m := range []struct {
		row       string
		got       float64
		tolerance float64
	}{
		{`program, linux/amd64, stripped \| ([\d.]+) MiB \| (\d+) MiB`, float64(info.Size()) / mib, 0.25},
		{`modules of others in it \| (\d+) \| (\d+)`, float64(modules), 0},
		{`image for one processor, compressed \| ([\d.]+) MiB \| (\d+) MiB`, float64(layer) / mib, 0.25},
		{`start: .* \| (\d+) \| (\d+)`, start(t, program), 30},
	} {
		said, most := figures(t, m.row)
		t.Logf("%s: %.1f", m.row, m.got)
		if m.got > most {
			t.Errorf("%s: %.1f, want %.0f at most", m.row, m.got, most)
		}
		if m.got > said+m.tolerance || m.got < said-m.tolerance {
			t.Errorf("SUPPORT.md has %.1f for %s, and it is %.1f: write it there, and say why\n%s", said, m.row, m.got, grown(t, tr.release))
		}
	}
}

// figures returns what SUPPORT.md has in a row of its table: the measure and the limit.
func figures(t *testing.T, row string) (said, most float64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "SUPPORT.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(row).FindStringSubmatch(string(text))
	if m == nil {
		t.Fatalf("SUPPORT.md has no row %s", row)
	}
	said, err1 := strconv.ParseFloat(m[1], 64)
	most, err2 := strconv.ParseFloat(m[2], 64)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return said, most
}

// start returns how many times as long as "true" the program takes to print its version:
// the median of rounds that measure both.
func start(t *testing.T, program string) float64 {
	t.Helper()
	took := func(args ...string) float64 {
		began := time.Now()
		output(t, exec.Command(args[0], args[1:]...))
		return time.Since(began).Seconds()
	}
	var ratios []float64
	for range 21 {
		ratios = append(ratios, took(program, "version")/took("true"))
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// grown returns how the table of modules has changed since the last version, or since the
// last commit if there is none.
func grown(t *testing.T, r *release) string {
	t.Helper()
	base := r.latest()
	if base == "" {
		base = "HEAD~1"
	}
	return r.git("diff", "--unified=0", base, "HEAD", "--", thirdParty[0])
}
