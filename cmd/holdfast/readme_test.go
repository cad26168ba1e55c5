package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeSession runs what README.md shows first, and compares what it prints but
// for who, when and the terminal.
func TestReadmeSession(t *testing.T) {
	t.Parallel()
	readme := read(t, filepath.Join("..", "..", "README.md"))
	_, session, _ := strings.Cut(readme, "```console\n$ CGO_ENABLED=0 go build -o bin/ ./cmd/holdfast\n")
	session, _, found := strings.Cut(session, "```")
	if !found {
		t.Fatal("README.md has no session that begins with go build")
	}
	env := append(os.Environ(), "HOLDFAST_STORE="+sqlite(t))
	shell := func(command string) string {
		cmd := exec.Command("sh", "-c", "exec 2>&1; "+command)
		cmd.Env = env
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		return string(out)
	}
	differs := strings.NewReplacer("bin/holdfast", "holdfast", "sleep 20 &", "sh -c 'touch has; sleep 1' & until test -e has; do sleep 0.02; done")
	general := func(s string) string {
		s = regexp.MustCompile(`\S+@\S+ \(pid \d+, \w+\)`).ReplaceAllString(s, "WHO")
		s = regexp.MustCompile(` for [0-9.]+m?s\b`).ReplaceAllString(s, "") // none is shown at first
		return strings.NewReplacer("has had it", "has it", "holdfast: ", "").Replace(s)
	}
	dir, steps := t.TempDir(), strings.Split(session, "$ ")[1:]
	first, rest := steps[0], steps[1:]
	holder := exec.Command("sh", "-c", differs.Replace(first))
	holder.Dir, holder.Env = dir, env
	if err := holder.Run(); err != nil { // its command is in the background
		t.Fatal(err)
	}
	for _, step := range rest {
		command, want, _ := strings.Cut(step, "\n")
		if got := shell(differs.Replace(command)); general(got) != general(want) {
			t.Errorf("%s\nprints:\n%swant, but for who and when:\n%s", command, got, want)
		}
	}
	if len(rest) < 2 || !strings.Contains(session, "status 75") {
		t.Errorf("the session does not show status 75, and a wait:\n%s", session)
	}
}
