package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/codeblock"
)

// A session is what a page shows of a shell: commands behind "$ ", and what they print.
type session struct {
	t       *testing.T
	dir     string
	env     []string
	differs *strings.Replacer // what is typed here instead
	tokens  map[string]string // what stands for a token of the page here
}

func newSession(t *testing.T, differs ...string) *session {
	return &session{
		t: t, dir: t.TempDir(), env: append(os.Environ(), "HOLDFAST_STORE="+sqlite(t)),
		differs: strings.NewReplacer(differs...), tokens: map[string]string{},
	}
}

// steps runs the commands of a block, and compares what they print but for who, when
// and the terminal. One that ends in "&" is begun, and prints nothing.
func (s *session) steps(text string) (ran int) {
	for _, step := range strings.Split("\n"+text, "\n$ ")[1:] {
		command, want, _ := strings.Cut(step, "\n")
		typed := s.differs.Replace(command)
		for page, here := range s.tokens {
			typed = strings.ReplaceAll(typed, page, here)
		}
		cmd := exec.Command("sh", "-c", "exec 2>&1; "+typed)
		cmd.Dir, cmd.Env = s.dir, s.env
		ran++
		if strings.HasSuffix(command, "&") {
			if err := cmd.Run(); err != nil {
				s.t.Fatalf("%s: %v", command, err)
			}
			continue
		}
		out, err := cmd.Output()
		if err != nil {
			s.t.Errorf("%s: %v\n%s", command, err, out)
		}
		s.learn(want, string(out))
		if got := general(string(out)); got != general(want) {
			s.t.Errorf("%s\nprints:\n%swant, but for who and when:\n%s", command, out, want)
		}
	}
	return ran
}

var aToken = regexp.MustCompile(`\b\d{16}\b`)

// learn notes which tokens stand for those of the page.
func (s *session) learn(page, here string) {
	were, are := aToken.FindAllString(page, -1), aToken.FindAllString(here, -1)
	for i := range min(len(were), len(are)) {
		s.tokens[were[i]] = are[i]
	}
}

// general leaves out who, when, and which token.
func general(s string) string {
	s = regexp.MustCompile(`\S+@\S+ \((pid \d+, [\w.]+|a person)\)`).ReplaceAllString(s, "WHO")
	s = regexp.MustCompile(`\b(by) \S+@[^ :]+:`).ReplaceAllString(s, "$1 WHO:")
	s = regexp.MustCompile(` for [0-9.hms]+s\b| for \d+[hm]\b`).ReplaceAllString(s, "") // none is shown at first
	s = regexp.MustCompile(`, until [^:]+:\d\d:\d\d`).ReplaceAllString(s, "")
	s = regexp.MustCompile(`\b\d+m?s\b( ago)?`).ReplaceAllString(s, "TIME$1")
	s = aToken.ReplaceAllString(s, "TOKEN")
	s = strings.NewReplacer("has had it", "has it", "holdfast: ", "").Replace(s)
	return strings.TrimSuffix(s, "\n")
}

// TestReadmeSession runs what README.md shows first.
func TestReadmeSession(t *testing.T) {
	t.Parallel()
	readme := read(t, filepath.Join("..", "..", "README.md"))
	_, text, _ := strings.Cut(readme, "```console\n$ CGO_ENABLED=0 go build -o bin/ ./cmd/holdfast\n")
	text, _, found := strings.Cut(text, "```")
	if !found {
		t.Fatal("README.md has no session that begins with go build")
	}
	s := newSession(t, "bin/holdfast", "holdfast", "sleep 20 &", "sh -c 'touch has; sleep 1' & until test -e has; do sleep 0.02; done")
	if n := s.steps(text); n < 3 || !strings.Contains(text, "status 75") || !strings.Contains(text, "waiting for") {
		t.Errorf("the session does not show status 75, and a wait:\n%s", text)
	}
}

// TestRunbook runs what docs/operations.md does about a lock that does not come free.
func TestRunbook(t *testing.T) {
	t.Parallel()
	const page = "docs/operations.md"
	blocks, problems := codeblock.Find(page, read(t, filepath.Join("..", "..", page)))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s := newSession(t, "-- ./deploy.sh &", "-- ./deploy.sh & until test -e has; do sleep 0.02; done")
	script := "#!/bin/sh\ntouch has\nexec sleep 60\n"
	if err := os.WriteFile(filepath.Join(s.dir, "deploy.sh"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	ran := 0
	for _, b := range blocks {
		if b.CheckedBy == "TestRunbook" {
			ran += s.steps(b.Text)
		}
	}
	if ran < 6 {
		t.Errorf("%d steps: is the page read?", ran)
	}
}
