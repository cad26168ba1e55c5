//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/codeblock"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/sqlitelock"
)

// A session is a shell session of a page: commands behind "$ ", and their output.
type session struct {
	t       *testing.T
	dir     string
	store   string
	env     []string
	differs *strings.Replacer // replaces commands of the page for the test
	tokens  map[string]string // the token here, by the token in the page
}

func newSession(t *testing.T, differs ...string) *session {
	store := sqlite(t)
	return &session{
		t: t, dir: t.TempDir(), store: store, env: append(os.Environ(), "HOLDFAST_STORE="+store),
		differs: strings.NewReplacer(differs...), tokens: map[string]string{},
	}
}

// steps runs the commands of a block, and compares their output with the page after general. A
// command that ends in "&" runs in the background, and its output is not compared.
func (s *session) steps(text string) (ran int) {
	for _, step := range strings.Split("\n"+text, "\n$ ")[1:] {
		command, want, _ := strings.Cut(step, "\n")
		typed := s.differs.Replace(command)
		for page, here := range s.tokens {
			typed = strings.ReplaceAll(typed, page, here)
		}
		if job, rest, behind := strings.Cut(typed, " & "); behind && strings.HasSuffix(command, "&") {
			typed = "(" + job + "; touch ended) & " + rest
			s.t.Cleanup(func() { // before its directory is removed
				eventually(s.t, command+" has ended", func() bool {
					_, err := os.Stat(filepath.Join(s.dir, "ended"))
					return err == nil
				})
			})
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

// learn records which tokens here replace those of the page.
func (s *session) learn(page, here string) {
	were, are := aToken.FindAllString(page, -1), aToken.FindAllString(here, -1)
	for i := range min(len(were), len(are)) {
		s.tokens[were[i]] = are[i]
	}
}

// general replaces holders, times and tokens, and sorts the lines.
func general(s string) string {
	s = regexp.MustCompile(`\S+ \((pid \d+(, [\w.]+)?|a person)\)`).ReplaceAllString(s, "WHO")
	s = regexp.MustCompile(`\b(by) \S+@[^ :]+:`).ReplaceAllString(s, "$1 WHO:")
	s = regexp.MustCompile(`\b\w{3} \d+ \w{3} \d\d:\d\d:\d\d`).ReplaceAllString(s, "CLOCK")
	s = regexp.MustCompile(`\b\d+(\.\d+)?(ms|h|m|s)(\d+(m|s))*\b`).ReplaceAllString(s, "TIME")
	s = aToken.ReplaceAllString(s, "TOKEN")
	s = strings.NewReplacer(" for TIME", "", "held TIME by", "held by", "holdfast: ", "").Replace(s) // no time is shown at first
	s = regexp.MustCompile(` +`).ReplaceAllString(s, " ")                                            // columns
	lines := strings.Split(strings.TrimSpace(s), "\n")
	slices.Sort(lines) // messages and output may come in any order
	return strings.Join(lines, "\n")
}

// TestReadmeSession runs the first session of README.md.
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

// stages prepare the store for a session of a page, by its first command.
var stages = map[string]func(t *testing.T, join func(holder string) *holdfast.Client){
	"holdfast show encoders": func(t *testing.T, join func(string) *holdfast.Client) {
		want := func(permits int, reason string) *holdfast.AcquireOptions {
			return &holdfast.AcquireOptions{Mode: holdfast.Permits(permits, 3), Reason: reason}
		}
		acquired(t, join("video@web-3 812 encode.sh"), "encoders", want(2, "film 12"))
		acquired(t, join("video@web-4 77 encode.sh"), "encoders", want(1, ""))
		isWaiting(t, join("video@web-5 4011 encode.sh"), "encoders", want(2, ""))
	},
	"holdfast show charge-42": func(t *testing.T, join func(string) *holdfast.Client) {
		done(t, join("video@web-3 812 charge.sh"), "charge-42")
	},
	"holdfast show nightly": func(t *testing.T, join func(string) *holdfast.Client) {
		gone := join("@web-3 812 ")
		acquired(t, gone, "nightly", nil)
		opts := &holdfast.BreakOptions{Author: "ada@ops-1", Reason: "its node is gone"}
		if _, err := gone.Break(t.Context(), "nightly", opts); err != nil {
			t.Fatal(err)
		}
		acquired(t, join("batch@web-4 77 nightly.sh"), "nightly", nil)
	},
	"holdfast once list": func(t *testing.T, join func(string) *holdfast.Client) {
		c := join("deploy@web-3 812 report.sh")
		done(t, c, "charge-42")
		if _, err := c.OnceBegin(t.Context(), "report-2026-11-21", nil); err != nil {
			t.Fatal(err)
		}
	},
}

func acquired(t *testing.T, c *holdfast.Client, name string, opts *holdfast.AcquireOptions) {
	t.Helper()
	if _, err := c.TryAcquire(t.Context(), name, opts); err != nil { // Close releases it
		t.Fatal(err)
	}
}

// isWaiting makes a client wait for a lock until the test ends.
func isWaiting(t *testing.T, c *holdfast.Client, name string, opts *holdfast.AcquireOptions) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	waiting, ended := make(chan struct{}), make(chan struct{})
	opts.OnWait = func(holdfast.WaitState) {
		select {
		case <-waiting:
		default:
			close(waiting)
		}
	}
	go func() {
		defer close(ended)
		_, _ = c.Acquire(ctx, name, opts)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	<-waiting
}

func done(t *testing.T, c *holdfast.Client, key string) {
	t.Helper()
	_, err := c.Once(t.Context(), key, nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte("receipt 7, 12 EUR\n"), nil })
	if err != nil {
		t.Fatal(err)
	}
}

// TestSessionsInPages runs the sessions of the pages, each on a store that its stage has prepared,
// except those that another test runs.
func TestSessionsInPages(t *testing.T) {
	t.Parallel()
	ran := 0
	for _, page := range pages(t) {
		blocks, _ := codeblock.Find(filepath.Base(page), read(t, page)) // archtest reports the problems
		for _, b := range blocks {
			if b.Kind != "console" || b.CheckedBy != "" {
				continue
			}
			first, _, _ := strings.Cut(strings.TrimPrefix(b.Text, "$ "), "\n")
			t.Run(first, func(t *testing.T) {
				stage, s := stages[first], newSession(t)
				if stage == nil {
					t.Fatalf("%s: a session needs a stage, or names the test that runs it", b.At())
				}
				stage(t, s.join)
				ran += s.steps(b.Text)
			})
		}
	}
	if ran < len(stages) {
		t.Errorf("%d of %d sessions were run", ran, len(stages))
	}
}

// unheard are programs of the pages that need root, a network, or this repository. A program that
// does nothing replaces them.
var unheard = []string{"sudo", "make", "go", "systemctl", "flock"}

// aWrapper calls holdfast, ends commands that would run for ever, and logs failures. Status 1 is
// not a failure: it reports that no process has the lock.
const aWrapper = `#!/bin/sh
case "$1" in
elect | watch | serve)
	HOLDFAST "$@" &
	sleep 1
	kill -TERM $!
	wait $!
	exit 0 ;;
esac
HOLDFAST "$@"
status=$?
[ $status -le 1 ] || echo "holdfast $*: status $status" >>FAILED
exit $status
`

// TestScriptsInPages runs the shell scripts of the pages, each on a store of its own, with dummies
// for the programs of the user. Other tests check the arguments (TestCommandsInPages) and the
// results.
func TestScriptsInPages(t *testing.T) {
	t.Parallel()
	holdfast, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, page := range pages(t) {
		if name := filepath.Base(page); name == "recipes.md" || name == "cli.md" {
			continue // examples/recipes runs those of recipes.md, TestExamples those of --help
		}
		blocks, _ := codeblock.Find(filepath.Base(page), read(t, page)) // archtest reports the problems
		for _, b := range blocks {
			if b.Kind != "sh" || b.CheckedBy != "" {
				continue
			}
			ran++
			t.Run(b.At(), func(t *testing.T) {
				t.Parallel()
				runScript(t, holdfast, b.Text)
			})
		}
	}
	if ran < 16 {
		t.Errorf("%d scripts, want at least 16: are the pages read?", ran)
	}
}

func runScript(t *testing.T, holdfast, script string) {
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	failed := filepath.Join(bin, "failed")
	program := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	program(filepath.Join(bin, "holdfast"), strings.NewReplacer("HOLDFAST", holdfast, "FAILED", failed).Replace(aWrapper))
	for _, name := range unheard {
		program(filepath.Join(bin, name), "#!/bin/sh\ncat >/dev/null\n")
	}
	for _, m := range regexp.MustCompile(`\./([\w.-]+)`).FindAllStringSubmatch(script, -1) {
		program(filepath.Join(dir, m[1]), "#!/bin/sh\necho here\n")
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOLDFAST_STORE="+sqlite(t), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	why, _ := os.ReadFile(failed)
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) || len(why) > 0 {
		t.Errorf("%v\n%s%s\nof\n%s", err, why, out, script)
	}
}

// join returns a client of the session's store that others see as holder: "user@host pid program".
func (s *session) join(holder string) *holdfast.Client {
	s.t.Helper()
	words := strings.SplitN(holder, " ", 3)
	user, host, _ := strings.Cut(words[0], "@")
	pid, err := strconv.Atoi(words[1])
	if err != nil {
		s.t.Fatal(err)
	}
	engine, err := sqlitelock.OpenURL(context.Background(), s.store, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := holdfast.New(engine, &holdfast.Options{Holder: holdfast.Holder{User: user, Host: host, PID: pid, Program: words[2]}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = c.Close()
		engine.Close()
	})
	return c
}

// TestRunbook runs the commands of docs/operations.md for a lock that is not released.
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

// TestServerPage runs the blocks of README.md and docs/server.md that use a server and curl.
func TestServerPage(t *testing.T) {
	t.Parallel()
	testsvc.Need(t, "curl", "curl", "curl")
	ran := 0
	for _, page := range []string{"README.md", "docs/server.md"} {
		blocks, problems := codeblock.Find(page, read(t, filepath.Join("..", "..", page)))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for _, b := range blocks {
			if b.CheckedBy != "TestServerPage" {
				continue
			}
			ran++
			address := freeAddress(t)
			script := strings.NewReplacer("127.0.0.1:7420", address, "bin/holdfast serve", "holdfast serve --listen "+address, "holdfast serve", "holdfast serve --listen "+address,
				"redis://redis.internal:6379", sqlite(t), "curl ", "curl --silent ").Replace(b.Text)
			cmd := exec.Command("sh", "-c", script+"kill $!; wait")
			cmd.Env = append(os.Environ(), "HOLDFAST_STORE="+sqlite(t))
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), `"fencing_token":`) {
				t.Errorf("%s: %v\n%s", b.At(), err, out)
			}
		}
	}
	if ran != 2 {
		t.Errorf("%d blocks: are the pages read?", ran)
	}
}

// pages returns the pages whose sessions and scripts are run: README.md and those in docs.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{filepath.Join("..", "..", "README.md")}
	for _, dir := range []string{"", "reference", "internals"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "docs", dir, "*.md"))
		if err != nil || len(found) == 0 {
			t.Fatalf("docs/%s: %d pages, %v", dir, len(found), err)
		}
		all = append(all, found...)
	}
	return all
}
