package systest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
	"github.com/holdfast-locks/holdfast/redislock"
	"github.com/holdfast-locks/holdfast/sqlitelock"
)

// crewCommand makes the test binary a crew: a process that does one job, as
// its arguments say, and reports on its standard output, a JSON value a line.
// It begins when it reads a line from its standard input, and ends with it, so
// that it never outlives the test.
const crewCommand = "crew"

// jobs are what a crew can do. A job returns what the crew reports last.
var jobs = map[string]func(ctx context.Context, j job) (any, error){
	"take turns": takeTurns,
	"queue up":   queueUp,
	"stress":     stressCrew,
}

// A job is what a crew is told. out takes values to report meanwhile.
type job struct {
	Job     string
	Store   string // URL
	Name    string
	Workers int
	For     time.Duration
	Hold    time.Duration
	Seed    uint64

	out func(any)
}

// A crewError is what a crew reports when its job failed.
type crewError struct{ Failed string }

// runCrew is the main function of a crew.
func runCrew(arg string) {
	in := bufio.NewReader(os.Stdin)
	enc := json.NewEncoder(os.Stdout)
	lines := make(chan any, 1024)
	written := make(chan struct{})
	go func() { // one writer for all workers; ends when lines is closed
		defer close(written)
		for v := range lines {
			_ = enc.Encode(v)
		}
	}()
	var j job
	err := json.Unmarshal([]byte(arg), &j)
	j.out = func(v any) { lines <- v }
	var report any
	if err == nil {
		report, err = prepared(j, in)
	}
	if err != nil {
		report = crewError{err.Error()}
	}
	lines <- report
	close(lines)
	<-written
}

// prepared says that the crew is ready, waits for the word to begin, and does
// the job until it is done or the standard input ends.
func prepared(j job, in *bufio.Reader) (any, error) {
	do, ok := jobs[j.Job]
	if !ok {
		return nil, fmt.Errorf("no job %q", j.Job)
	}
	j.out("ready")
	if _, err := in.ReadString('\n'); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
		time.Sleep(patience) // the job has that long to end by itself
		os.Exit(1)
	}()
	return do(ctx, j)
}

// openStore opens the engine of a URL; "memory:" is for this process alone.
func openStore(ctx context.Context, url string) (driver.Engine, error) {
	switch scheme, _, _ := strings.Cut(url, ":"); scheme {
	case "memory":
		return memlock.New(), nil
	case "sqlite":
		return sqlitelock.OpenURL(ctx, url)
	default:
		return redislock.Open(ctx, url)
	}
}

// A crew is such a process.
type crew struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// startCrew returns a crew that is ready to begin. It ends with the test.
func startCrew(t testing.TB, j job) *crew {
	t.Helper()
	arg, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	c := &crew{t: t, cmd: exec.Command(os.Args[0], crewCommand, string(arg))}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	c.out.Buffer(nil, 64<<20)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.in.Close()
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	var ready string
	if c.next(&ready); ready != "ready" {
		t.Fatalf("a crew says %q, want that it is ready", c.out.Text())
	}
	return c
}

// begin lets the crew begin.
func (c *crew) begin() {
	c.t.Helper()
	if _, err := io.WriteString(c.in, "begin\n"); err != nil {
		c.t.Fatal(err)
	}
}

// next reads the crew's next report into v.
func (c *crew) next(v any) {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("a crew ended: %v", c.out.Err())
	}
	var failed crewError
	if json.Unmarshal(c.out.Bytes(), &failed); failed.Failed != "" {
		c.t.Fatalf("a crew failed: %s", failed.Failed)
	}
	if err := json.Unmarshal(c.out.Bytes(), v); err != nil {
		c.t.Fatalf("a crew says %.200q: %v", c.out.Text(), err)
	}
}

// kill ends the crew as a crash would, and returns when it is gone.
func (c *crew) kill() {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	_ = c.cmd.Wait()
}
