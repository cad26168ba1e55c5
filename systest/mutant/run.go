package mutant

import (
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
	// A finder's limit is long beside every test that is named; with Hang it is
	// waited for, and the finders are tests in virtual time.
	finderLimit = 2 * time.Minute
	hangLimit   = 15 * time.Second
)

// build compiles the tests of a package below root, with an overlay unless that
// is "", and returns the binary, which it puts into dir.
func build(root, pkg, overlay, dir string) (string, error) {
	binary := filepath.Join(dir, strings.ReplaceAll(pkg, "/", "_")+".test")
	cmd := exec.Command("go", "test", "-c", "-o", binary, "-overlay", overlay, ".")
	if overlay == "" {
		cmd = exec.Command("go", "test", "-c", "-o", binary, ".")
	}
	cmd.Dir = filepath.Join(root, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the tests of %s do not compile: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// A verdict is what has become of one test.
type verdict int

const (
	passed verdict = iota
	failed
	hung
	unclear // it was not run, or something else went wrong
)

func (v verdict) String() string { return [...]string{"passed", "failed", "hung", "unclear"}[v] }

// run runs one test of a binary as the go command would.
func (f Finder) run(binary, root string, limit time.Duration) (v verdict, output string) {
	cmd := exec.Command(binary, "-test.v", "-test.count=1", "-test.timeout="+limit.String(), "-test.run="+f.pattern())
	cmd.Dir = filepath.Join(root, f.Dir)
	cmd.Env = append(os.Environ(), "PWD="+cmd.Dir)
	out, err := cmd.CombinedOutput()
	return f.judge(string(out), err), string(out)
}

// judge tells from the output of a run, and how it ended, what has become of
// the test.
func (f Finder) judge(output string, err error) verdict {
	stands := func(word string) bool {
		return regexp.MustCompile(`(?m)^ *--- ` + word + `: ` + regexp.QuoteMeta(f.Test) + ` \(`).MatchString(output)
	}
	switch {
	case strings.Contains(output, "panic: test timed out"), strings.Contains(output, "all goroutines are asleep"),
		strings.Contains(output, "panic: deadlock: all goroutines in bubble are blocked"):
		return hung
	case err == nil && stands("PASS"):
		return passed
	case err != nil && stands("FAIL"):
		return failed
	}
	return unclear
}

// pattern returns what selects the test alone.
func (f Finder) pattern() string {
	parts := strings.Split(f.Test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// dirs returns the packages of the finders.
func (m Mutant) dirs() []string {
	var dirs []string
	for _, f := range m.FoundBy {
		if !slices.Contains(dirs, f.Dir) {
			dirs = append(dirs, f.Dir)
		}
	}
	return dirs
}
