package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWorkflows: actionlint finds nothing in what the forge runs, and each action is
// pinned by a commit.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, ".github", "workflows", "*.yml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d workflows, %v", len(files), err)
	}
	lint := func(files ...string) ([]byte, error) {
		return exec.Command("go", append([]string{"tool", "actionlint", "-shellcheck=", "-pyflakes="}, files...)...).CombinedOutput()
	}
	if out, err := lint(files...); err != nil {
		t.Errorf("actionlint: %v\n%s", err, out)
	}
	pinned := regexp.MustCompile(`^[-\w]+/[-\w]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	uses := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)uses: (.*)$`).FindAllStringSubmatch(string(text), -1) {
			if uses++; !pinned.MatchString(m[1]) {
				t.Errorf("%s uses %s, which is not a commit with its version", file, m[1])
			}
		}
		spoiled := filepath.Join(t.TempDir(), "spoiled.yml")
		put(t, spoiled, strings.Replace(string(text), "runs-on: ubuntu-24.04", "runs-on: ubuntu-24.04\n    step: []", 1))
		if out, err := lint(spoiled); err == nil {
			t.Errorf("actionlint finds nothing wrong in a spoiled workflow: %s", out)
		}
	}
	if uses < 5 {
		t.Errorf("%d actions, want 5 at least", uses)
	}
}
