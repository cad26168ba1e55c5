//go:build unix

package clienttest

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// tree is the directory of the clients.
const tree = "../../examples/clients/"

// A language is a client with its demo, whose arguments are URLS COMMAND ARG...
type language struct {
	name string
	ttl  int // the shortest TTL for its tests, in seconds
	demo []string
}

// languages returns all languages, ready to run.
func languages(t *testing.T) []language {
	t.Helper()
	classes, err := javaClasses()
	if err != nil {
		t.Fatal(err)
	}
	return []language{
		{"python", 6, []string{"python3", "-B", tree + "python/demo.py"}},
		{"python-stream", 6, []string{"env", "STREAM=1", "python3", "-B", tree + "python/demo.py"}},
		{"javascript", 6, []string{"node", tree + "javascript/demo.mjs"}},
		{"java", 6, []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classes, "Demo"}},
		{"shell", 6, []string{"sh", tree + "shell/demo.sh"}},
		{"shell-stream", 12, []string{"env", "STREAM=1", "sh", tree + "shell/demo.sh"}},
	}
}

// javaClasses compiles the client in Java, once, and returns the directory of the classes.
var javaClasses = sync.OnceValues(func() (string, error) {
	files, err := filepath.Glob(tree + "java/*.java")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("javac", append([]string{"--release", "17", "-Xlint:all,-serial", "-Werror", "-d", scratch}, files...)...).CombinedOutput()
	if err != nil {
		return "", errors.New("javac (a JDK of 17 or later): " + err.Error() + "\n" + string(out))
	}
	return scratch, nil
})

// A job is one run of a demo.
type job struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	input io.Closer
	lines chan string // of its output
	ended chan struct{}
	said  strings.Builder // on its standard error
}

// start runs a demo.
func (l language) start(t *testing.T, urls string, args ...string) *job {
	t.Helper()
	argv := append(append(l.demo[:len(l.demo):len(l.demo)], urls), args...)
	j := &job{t: t, name: l.name, cmd: exec.Command(argv[0], argv[1:]...), lines: make(chan string, 100), ended: make(chan struct{})}
	j.cmd.Stderr = &j.said
	j.cmd.WaitDelay = time.Second
	var err error
	if j.input, err = j.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := j.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the job
		for s := bufio.NewScanner(out); s.Scan(); {
			j.lines <- s.Text()
		}
		close(j.lines)
		_ = j.cmd.Wait()
		close(j.ended)
	}()
	t.Cleanup(func() {
		_ = j.cmd.Process.Kill()
		_ = out.Close() // a command of the demo may still have it
		<-j.ended
	})
	return j
}

// patience is how long a test waits at most, even on a busy machine.
const patience = time.Minute

// line returns the next line that the demo prints, or "" if it has ended.
func (j *job) line() string {
	j.t.Helper()
	select {
	case line := <-j.lines:
		return line
	case <-time.After(patience):
		j.t.Fatalf("%s: prints nothing", j.name)
		return ""
	}
}

// wantLine checks the first word of the next line, and returns the rest.
func (j *job) wantLine(want string) (rest string) {
	j.t.Helper()
	first, rest, _ := strings.Cut(j.line(), " ")
	if first != want {
		_ = j.input.Close()
		j.t.Fatalf("%s: prints %q %q, want %q\n%s", j.name, first, rest, want, j.stderr())
	}
	return rest
}

// finish ends the demo's input.
func (j *job) finish() { _ = j.input.Close() }

// end waits until the demo ends, and returns its status.
func (j *job) end() int {
	j.t.Helper()
	select {
	case <-j.ended:
		return j.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		j.t.Fatalf("%s: does not end", j.name)
		return 0
	}
}

func (j *job) stderr() string {
	select {
	case <-j.ended:
		return j.said.String()
	case <-time.After(5 * time.Second):
		return "(it has not ended)"
	}
}

// wantEnd waits until the demo ends. With a code the demo must fail and print the code; without one
// it must succeed and print nothing.
func (j *job) wantEnd(code string) {
	j.t.Helper()
	status := j.end()
	if got := strings.TrimSpace(j.said.String()); !strings.Contains(got, code) || (status == 0) != (code == "") || (got == "") != (code == "") {
		j.t.Errorf("%s: ends with %d and says %q, want %q", j.name, status, got, code)
	}
}
