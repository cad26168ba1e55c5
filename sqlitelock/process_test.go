package sqlitelock

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// A child is another process on the same database.
type child struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // its output; closed when it has ended
}

// spawn starts this test binary as a child with a role of childMain.
func spawn(t testing.TB, role, path string, more ...string) *child {
	t.Helper()
	c, err := spawnWith(t, nil, role, path, more...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// spawnWith is spawn with attributes of the process, which the system may refuse.
func spawnWith(t testing.TB, attr *syscall.SysProcAttr, role, path string, more ...string) (*child, error) {
	t.Helper()
	c := &child{t: t, lines: make(chan string, 1000)}
	c.cmd = exec.Command(programFor(t, attr), append([]string{childArg, role, path}, more...)...)
	c.cmd.Stderr, c.cmd.SysProcAttr = os.Stderr, attr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	t.Cleanup(c.kill)
	return c, nil
}

// kill ends the child with SIGKILL and waits for it. It may be called twice.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	for range c.lines {
	}
	_ = c.cmd.Wait()
}

// end waits for the child, and fails t unless the child succeeds.
func (c *child) end() {
	c.t.Helper()
	_ = c.in.Close()
	for range c.lines {
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("%s: %v", strings.Join(c.cmd.Args[1:], " "), err)
	}
}

func (c *child) say(command string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, command); err != nil {
		c.t.Fatal(err)
	}
}

// hear returns the numbers in the next line, which must begin with word.
func (c *child) hear(word string) (numbers []int64) {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		rest, found := strings.CutPrefix(line, word)
		if !ok || !found {
			c.t.Fatalf("the child said %q, want %q", line, word)
		}
		for _, field := range strings.Fields(rest) {
			var n int64
			if _, err := fmt.Sscan(field, &n); err != nil {
				c.t.Fatalf("the child said %q: %v", line, err)
			}
			numbers = append(numbers, n)
		}
		return numbers
	case <-time.After(drivertest.Patience):
		c.t.Fatalf("the child did not say %q", word)
		return nil
	}
}

// sleeper returns a child that waits for name, which is held, at this place.
func sleeper(t testing.TB, path, name string, place int64) *child {
	t.Helper()
	c := spawn(t, "wait", path)
	c.fallAsleep(name, place)
	return c
}

func (c *child) fallAsleep(name string, place int64) {
	c.t.Helper()
	c.say("acquire " + name)
	if got := c.hear("held")[0]; got != place {
		c.t.Errorf("place %d, want %d", got, place)
	}
}

// boot returns the present instant of the boot-time clock.
func boot(t testing.TB, e *Engine) time.Duration {
	t.Helper()
	d, err := e.clock.boot()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestProcessesExclude checks that eight processes, which create the database together, never hold
// the lock at the same time. INVARIANT I1, INVARIANT I2.
func TestProcessesExclude(t *testing.T) {
	const processes, times = 8, 50
	dir := t.TempDir()
	var children []*child
	for range processes {
		children = append(children, spawn(t, "count", filepath.Join(dir, "locks.db"), dir, fmt.Sprint(times)))
	}
	for _, c := range children {
		c.end()
	}
	content, err := os.ReadFile(filepath.Join(dir, "count"))
	if err != nil {
		t.Fatal(err)
	}
	if n, _, _ := strings.Cut(string(content), " "); n != fmt.Sprint(processes*times) {
		t.Errorf("counted to %s, want %d", n, processes*times)
	}
}

// TestHandOffBetweenProcesses checks that a released lock is soon granted to a waiting process.
func TestHandOffBetweenProcesses(t *testing.T) {
	e := openNew(t)
	req := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, req)
	c := sleeper(t, e.path, "t", 1)
	var took, cycles []time.Duration
	for range 20 {
		cycles = append(cycles, timeCycle(t, e))
		req = drivertest.Request("t", time.Minute)
		req.Queue, req.WaiterTTL = true, time.Minute
		before := boot(t, e)
		releaseAny(t, e, "t")
		took = append(took, time.Duration(c.hear("granted")[0])-before)
		drivertest.Eventually(t, "the lock is free again", func() bool {
			reply, err := e.Acquire(t.Context(), req)
			return err == nil && reply.Outcome == driver.Granted
		})
		c.fallAsleep("t", 1)
	}
	checkHandOff(t, "hand-off to another process", took, cycles)
	releaseAny(t, e, "t")
	c.hear("granted")
	c.end()
}

// releaseAny releases the only lease of a name.
func releaseAny(t testing.TB, e *Engine, name string) {
	t.Helper()
	lock, err := e.Inspect(t.Context(), name)
	if err != nil || len(lock.Holders) != 1 {
		t.Fatalf("inspect: %+v, %v; want a holder", lock, err)
	}
	drivertest.Release(t, e, driver.AcquireRequest{Name: name, LeaseID: lock.Holders[0].LeaseID})
}

// timeCycle returns how long it takes to acquire a free lock and to release it.
func timeCycle(t testing.TB, e *Engine) time.Duration {
	t.Helper()
	before := boot(t, e)
	drivertest.Cycle(t, e, "cycled")
	return boot(t, e) - before
}

// checkHandOff checks that a quarter of took is at most 10 ms, or five cycles on a slow machine.
func checkHandOff(t testing.TB, what string, took, cycles []time.Duration) {
	t.Helper()
	slices.Sort(took)
	slices.Sort(cycles)
	quarter, cycle := took[len(took)/4], cycles[len(cycles)/2] // a busy machine delays some
	t.Logf("%s: a quarter within %s, fastest %s, slowest %s; acquire and release: median %s", what, quarter, took[0], took[len(took)-1], cycle)
	if limit := max(10*time.Millisecond, 5*cycle); quarter > limit {
		t.Errorf("%s: a quarter within %s, want %s at most", what, quarter, limit)
	}
}

// TestWaitingCostsNothing checks that a waiting process uses at most 4 % of a core, or 10 % while
// others hand over a lock, and makes at most 3 requests in two seconds, even with the race
// detector.
func TestWaitingCostsNothing(t *testing.T) {
	e := openNew(t)
	req := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, req)
	other := open(t, e.path)
	handOver := func() { // from one engine to the other, which rings the bell
		holder, next := drivertest.Request("other", time.Minute), drivertest.Request("other", time.Minute)
		next.Queue, next.WaiterTTL = true, time.Minute
		drivertest.Granted(t, e, holder)
		drivertest.Held(t, other, next)
		drivertest.Release(t, e, holder)
		drivertest.Release(t, other, next)
	}
	for _, beside := range []struct {
		what string
		do   func()
		cost float64 // of a core
	}{
		{"keep-alive", func() { extend(t, e, req) }, 0.04},
		{"a busy file", func() { drivertest.Cycle(t, e, "other") }, 0.04},
		{"others who hand over", handOver, 0.1},
	} {
		c := sleeper(t, e.path, "t", 1)
		c.say("cost")
		before := c.hear("cost")
		n, start := 0, time.Now()
		for tick := time.NewTicker(5 * time.Millisecond); time.Since(start) < 2*time.Second; n++ {
			beside.do()
			<-tick.C
		}
		c.say("cost")
		after := c.hear("cost")
		cost, requests := float64(after[0]-before[0])/float64(time.Since(start)), after[1]-before[1]
		t.Logf("waiting beside %s (%d times): %.2f %% of a core, %d requests", beside.what, n, 100*cost, requests)
		if cost > beside.cost {
			t.Errorf("waiting beside %s uses %.1f %% of a core, want %.0f %% at most", beside.what, 100*cost, 100*beside.cost)
		}
		if requests > 3 {
			t.Errorf("waiting beside %s makes %d requests in two seconds, want 3 at most", beside.what, requests)
		}
		c.kill()
		drivertest.Release(t, e, req)
		lock, err := e.Inspect(t.Context(), "t")
		if err != nil || len(lock.Holders) != 1 {
			t.Fatalf("inspect: %+v, %v; want the killed waiter", lock, err)
		}
		req = drivertest.Request("t", time.Minute)
		drivertest.Release(t, e, driver.AcquireRequest{Name: "t", LeaseID: lock.Holders[0].LeaseID})
		drivertest.Granted(t, e, req)
	}
}

// TestKilledHolder checks that the lock of a killed process is free after its TTL, and not before.
func TestKilledHolder(t *testing.T) {
	const ttl = 700 * time.Millisecond
	e := openNew(t)
	client, err := holdfast.New(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := spawn(t, "hold", e.path, ttl.String())
	between := c.hear("")
	c.kill()
	drivertest.Held(t, e, drivertest.Request("held", time.Minute))
	lease, err := client.Acquire(t.Context(), "held", nil)
	if err != nil {
		t.Fatal(err)
	}
	at := boot(t, e)
	if early := time.Duration(between[0]) + ttl - at; early > 0 {
		t.Errorf("granted %s before the expiry", early)
	}
	late := at - time.Duration(between[1]) - ttl
	t.Logf("granted %s after the expiry", late)
	if late > time.Second {
		t.Errorf("granted %s after the expiry, want a second at most", late)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// TestKilledWriters checks that processes that are killed while they write leave a sound database,
// and keep no lock for longer than its TTL.
func TestKilledWriters(t *testing.T) {
	e := openNew(t)
	conn := plain(t, e.path)
	for round := range 8 {
		victims := []*child{spawn(t, "cycle", e.path), spawn(t, "cycle", e.path)}
		for _, c := range victims {
			c.hear("cycling")
		}
		for range round * 20 { // another instant in each round
			_, _ = e.Acquire(t.Context(), drivertest.Request("cycled", time.Millisecond))
		}
		for _, c := range victims {
			c.kill()
		}
		drivertest.Eventually(t, "the lock is free", func() bool {
			req := drivertest.Request("cycled", time.Minute)
			reply, err := e.Acquire(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if reply.Outcome == driver.Granted {
				drivertest.Release(t, e, req)
			}
			return reply.Outcome == driver.Granted
		})
	}
	var verdict string
	if _, err := conn.one(`PRAGMA integrity_check`, nil, &verdict); err != nil || verdict != "ok" {
		t.Errorf("the database is %q, %v", verdict, err)
	}
}
