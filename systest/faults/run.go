//go:build faults

package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// finderLimit is long compared to every test. With Hang the whole limit passes, so hangLimit
	// is short; its finders are tests in virtual time.
	finderLimit = 2 * time.Minute
	hangLimit   = 15 * time.Second
)

// overlay writes the faulty file into dir. It returns a file that tells the go command to read
// the faulty file in place of the one below root.
func (f Fault) overlay(root, dir string) (string, error) {
	text, err := f.apply(root)
	if err != nil {
		return "", err
	}
	faulty, list := filepath.Join(dir, filepath.Base(f.File)), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(faulty, []byte(text), 0o644); err != nil {
		return "", err
	}
	replace := map[string]map[string]string{"Replace": {filepath.Join(root, f.File): faulty}}
	data, err := json.Marshal(replace)
	if err != nil {
		return "", err
	}
	return list, os.WriteFile(list, data, 0o644)
}

// build compiles the tests of a package below root into a binary in dir, which it returns.
// overlay may be "".
func build(root, pkg, overlay, dir string) (string, error) {
	binary := filepath.Join(dir, strings.ReplaceAll(pkg, "/", "_")+".test")
	cmd := exec.Command("go", "test", "-c", "-tags", "web", "-o", binary, "-overlay", overlay, ".") // web: for systest/webtest
	cmd.Dir = filepath.Join(root, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the tests of %s do not compile: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// run runs one test of a binary as the go command would. A test that builds a program uses the
// overlay for that, too.
func (f Finder) run(binary, root, overlay string, limit time.Duration) (v verdict, output string) {
	cmd := exec.Command(binary, "-test.v", "-test.count=1", "-test.timeout="+limit.String(), "-test.run="+f.pattern())
	cmd.Dir = filepath.Join(root, f.Dir)
	cmd.Env = append(os.Environ(), "PWD="+cmd.Dir)
	if overlay != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	out, err := cmd.CombinedOutput()
	return f.judge(string(out), err), string(out)
}

// pattern returns the pattern that selects only this test.
func (f Finder) pattern() string {
	parts := strings.Split(f.Test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// dirs returns the packages of the finders.
func (f Fault) dirs() []string {
	var dirs []string
	for _, finder := range f.FoundBy {
		if !slices.Contains(dirs, finder.Dir) {
			dirs = append(dirs, finder.Dir)
		}
	}
	return dirs
}
