// Package traffic has the clients of the fault tests, in processes of their own: crews that do a
// job and report what they saw.
package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// command is the argument that makes a test binary a crew: a process that does one job, which is
// the next argument. A crew writes reports to its standard output, one JSON value a line. It begins
// when it reads a line from its standard input, and ends at the end of the input, so that it never
// outlives the test.
const command = "crew"

// patience is how long waits take at most, even on a loaded machine.
const patience = 20 * time.Second

// Jobs are the jobs of the crews of a test binary, by name. A job returns the last report of its
// crew.
type Jobs map[string]func(ctx context.Context, j Job) (any, error)

// A Job is the input of a crew.
type Job struct {
	Job     string // in Jobs
	Store   string // URL
	Name    string
	Workers int
	For     time.Duration
	Hold    time.Duration
	Seed    uint64

	By      Kind              // the engine for Redis; Redislock if it is empty
	Servers []string          // URLs for Store, one for each of several crews, by turns
	Via     map[string]string // of Locks: other addresses for some servers

	Names    int           // of Locks: how many
	TTL      time.Duration // of Locks
	Resource string        // of Locks: URL of a Resource
	First    int           // of Locks: number of the first worker
	Cohorts  bool          // of Locks: with Waits; the workers of a crew share one client, with Options.Cohorts
	Waits    bool          // of Locks: on odd names every worker works with the library, and waits

	// Out sends a report while the job runs. It may be called concurrently. The caller of Start
	// leaves it nil; the crew sets it.
	Out func(any) `json:"-"`
}

// Main must be called first by the TestMain of a package that starts crews. If the process is a
// crew, Main does its job and returns true; then TestMain must return.
func (jobs Jobs) Main() bool {
	if len(os.Args) != 3 || os.Args[1] != command {
		return false
	}
	jobs.run(os.Args[2])
	return true
}

// A crewError is what a crew reports when its job failed.
type crewError struct{ Failed string }

// run is the main function of a crew.
func (jobs Jobs) run(arg string) {
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
	var j Job
	err := json.Unmarshal([]byte(arg), &j)
	j.Out = func(v any) { lines <- v }
	var report any
	if err == nil {
		report, err = jobs.do(j, in)
	}
	if err != nil {
		report = crewError{err.Error()}
	}
	lines <- report
	close(lines)
	<-written
}

// do reports that the crew is ready, waits for the order to begin, and does the job until it is
// done or the standard input ends.
func (jobs Jobs) do(j Job, in *bufio.Reader) (any, error) {
	do, ok := jobs[j.Job]
	if !ok {
		return nil, fmt.Errorf("no job %q", j.Job)
	}
	j.Out("ready")
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

// Client opens the job's store, and a client on it. The caller closes both.
func (j Job) Client(ctx context.Context, opts *holdfast.Options) (*holdfast.Client, driver.Engine, error) {
	engine, err := Open(ctx, j.By, j.Store)
	if err != nil {
		return nil, nil, err
	}
	client, err := holdfast.New(engine, opts)
	if err != nil {
		return nil, nil, errors.Join(err, engine.Close())
	}
	return client, engine, nil
}

// A Crew is a crew that the test has started. Its methods must be called from the goroutine of
// the test, except for Follow.
type Crew struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// Start returns a crew that is ready to begin. The crew ends with the test.
func Start(t testing.TB, j Job) *Crew {
	t.Helper()
	return StartBy(t, (*exec.Cmd).Start, j)
}

// StartBy is Start with another function to start the process, on a host of its own for example.
func StartBy(t testing.TB, start func(*exec.Cmd) error, j Job) *Crew {
	t.Helper()
	arg, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	c := &Crew{t: t, cmd: exec.Command(os.Args[0], command, string(arg))}
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
	if err := start(c.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.in.Close()
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	var ready string
	if c.Next(&ready); ready != "ready" {
		t.Fatalf("a crew says %q, want that it is ready", c.out.Text())
	}
	return c
}

// Begin lets the crew begin.
func (c *Crew) Begin() {
	c.t.Helper()
	if _, err := io.WriteString(c.in, "begin\n"); err != nil {
		c.t.Fatal(err)
	}
}

// Next reads the crew's next report into v.
func (c *Crew) Next(v any) {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("a crew ended: %v", c.out.Err())
	}
	if failed := c.failed(); failed != "" {
		c.t.Fatalf("a crew failed: %s", failed)
	}
	if err := json.Unmarshal(c.out.Bytes(), v); err != nil {
		c.t.Fatalf("a crew says %.200q: %v", c.out.Text(), err)
	}
}

// failed returns the error of the crew's job, if the last report contains one.
func (c *Crew) failed() string {
	var e crewError
	_ = json.Unmarshal(c.out.Bytes(), &e) // not every report has this form
	return e.Failed
}

// Follow passes each report to note until the crew ends or note returns false. It drops a report
// that was cut off when the crew died.
func (c *Crew) Follow(note func(report []byte) bool) {
	for c.out.Scan() {
		if failed := c.failed(); failed != "" {
			c.t.Errorf("a crew failed: %s", failed)
			return
		}
		if !json.Valid(c.out.Bytes()) || !note(c.out.Bytes()) {
			return
		}
	}
}

// Stop freezes the crew's process with SIGSTOP, and returns when it is frozen.
func (c *Crew) Stop() {
	c.t.Helper()
	if err := testsvc.Freeze(c.cmd.Process.Pid); err != nil {
		c.t.Fatal(err)
	}
}

// Cont continues a frozen crew with SIGCONT.
func (c *Crew) Cont() {
	c.t.Helper()
	c.signal(syscall.SIGCONT)
}

func (c *Crew) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// Kill kills the crew like a crash, and returns after the process ended.
func (c *Crew) Kill() {
	c.t.Helper()
	c.signal(syscall.SIGKILL)
	_ = c.cmd.Wait()
}

// PID returns the ID of the crew's process.
func (c *Crew) PID() int { return c.cmd.Process.Pid }

// Term sends the crew TERM, which its job may heed.
func (c *Crew) Term() {
	c.t.Helper()
	c.signal(syscall.SIGTERM)
}
