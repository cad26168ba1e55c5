package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

var (
	cells  = flag.Int("cells", 1, "how often each cell of the matrix of TestJobDiesWithItsLock is run")
	soak   = flag.Duration("soak", 0, "about how long a soak takes that this is a part of: 20 runs of each cell in half an hour; 0 for what -cells says")
	report = flag.String("report", "", "file to which the matrix appends what it saw, as a row of a Markdown table")
)

// shapes are the ways in which a job gets out of the sight of those who look at
// its process group, or at its parents. Each is a script beside mark.sh, with
// the number of processes that leave marks. The command itself ends when it is
// asked to.
var shapes = []struct {
	name, script string
	processes    int
}{
	{"GNU timeout", `timeout 60 sh $d/mark.sh & wait`, 1},
	{"setsid", `setsid sh $d/mark.sh & wait`, 1},
	{"double fork", `(sh $d/mark.sh &); sh $d/mark.sh & wait`, 2},
	{"daemon", `(setsid sh -c "cd / && sh $d/mark.sh </dev/null >/dev/null 2>&1 &" &); sh $d/mark.sh & wait`, 2},
	{"set -m", `set -m; sh $d/mark.sh & wait`, 1},
	{"pty", `script -qec "sh $d/mark.sh" /dev/null </dev/null >/dev/null & wait`, 1},
	{"deaf tree", `sh $d/tree.sh 20 & wait`, 20},
	{"hydra", `setsid sh $d/hydra.sh & setsid sh $d/hydra.sh & wait`, 2},
}

// scripts are what the shapes are made of.
var scripts = map[string]string{
	// The order of the lines in one file is that of one clock.
	"mark.sh": `while :; do echo "$HOLDFAST_FENCING_TOKEN $$" >>"${0%/*}/marks"; sleep ${PAUSE-0.05}; done`,
	"tree.sh": `trap '' TERM INT HUP QUIT
		PAUSE=0.2
		rest=$(($1 - 1)); left=$((rest / 2)); right=$((rest - left))
		if [ $left -gt 0 ]; then sh $0 $left & fi
		if [ $right -gt 0 ]; then setsid sh $0 $right & fi
		. "${0%/*}/mark.sh"`,
	// It answers TERM with another of its kind.
	"hydra.sh": `trap 'setsid sh $0 &' TERM
		. "${0%/*}/mark.sh"`,
}

const (
	cellTTL       = 3 * time.Second
	cellKillAfter = 300 * time.Millisecond
)

// A cell is a job of one shape, and a rival that waits for its lock.
type cell struct {
	t         *testing.T
	shape     string
	dir, name string
	holder    *process // nil if it runs in a terminal
	term      *terminal
	rival     *process
	warden    *os.Process // of the job; nil if that is over already
}

// An event ends jobs. It is one of all cells of a row.
type event struct {
	name     string
	flags    []string
	terminal bool
	lenient  bool // the job may go on for a while beside the rival: until it is told
	hit      func(r *row)
	statuses []string
}

// events are what can happen to a lock or to those who guard it.
var events = []event{
	{name: "store stopped", hit: (*row).stopStore, statuses: []string{"79"}},
	{name: "store cut off", hit: func(r *row) { r.proxy.BlackHole() }, statuses: []string{"79"}},
	{name: "key deleted", hit: (*row).deleteKeys, lenient: true, statuses: []string{"79"}},
	{name: "TERM", hit: func(r *row) { r.signal(syscall.SIGTERM) }, statuses: []string{"143"}},
	{name: "Ctrl-C", terminal: true, hit: (*row).interrupt, statuses: []string{"130"}},
	{name: "max-hold", flags: []string{"--max-hold", "5s"}, hit: func(*row) {}, statuses: []string{"124"}},
}

// A row is an event and one cell for each shape.
type row struct {
	t      *testing.T
	event  event
	server *testsvc.Server
	proxy  *faultproxy.Proxy // between the server and those who hold the locks
	cells  []*cell
	jobs   *atomic.Int64 // all that were run
	late   *atomic.Int64 // marks beside a rival that a pause of the machine explains
}

// TestJobDiesWithItsLock has everything happen that ends a lock or its guards,
// to jobs of every shape. No process of a job may leave a mark after the first
// of a rival, and none may be left.
func TestJobDiesWithItsLock(t *testing.T) {
	t.Parallel()
	rows := slices.Clone(events)
	rows = append(rows,
		event{name: "KILL", hit: func(r *row) { r.signal(syscall.SIGKILL) }, statuses: []string{"137"}},
		event{name: "STOP", hit: func(r *row) { r.signal(syscall.SIGSTOP) }, statuses: []string{"79"}})
	for _, e := range events {
		hit := e.hit
		e.name, e.statuses = "KILL of the warden, "+e.name, append(e.statuses, "137")
		e.hit = func(r *row) {
			for _, c := range r.cells {
				if c.warden != nil {
					_ = c.warden.Kill() // it may have ended meanwhile
				}
			}
			hit(r)
		}
		rows = append(rows, e)
	}
	var jobs, late atomic.Int64
	for _, e := range rows {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			r := &row{t: t, event: e, server: testsvc.Redis(t), jobs: &jobs, late: &late}
			r.proxy = faultproxy.New(t, r.server.Addr)
			for range max(*cells, int(20**soak/(30*time.Minute))) {
				r.run()
			}
		})
	}
	t.Cleanup(func() {
		saw := fmt.Sprintf("%d jobs, in %d shapes, ended by %d events: %d marks beside a rival, 0 processes left",
			jobs.Load(), len(shapes), len(rows), late.Load())
		if late.Load() > 0 {
			saw += " (the machine was too busy to kill in time)"
		}
		if t.Failed() {
			saw = "FAILED"
		}
		t.Log(saw)
		reportRow(t, saw)
	})
}

// reportRow adds what the matrix saw to the report of a soak.
func reportRow(t *testing.T, saw string) {
	if *report == "" {
		return
	}
	f, err := os.OpenFile(*report, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	const fault = "the store stops, is cut off or forgets the lock; TERM, Ctrl-C, `--max-hold`; holdfast, its warden or both are killed or stopped"
	const must = "nobody of the job works beside a rival, nor is left"
	if _, err := fmt.Fprintf(f, "| %s | %s | %s | `%s` |\n", fault, must, saw, t.Name()); err != nil {
		t.Error(err)
	}
}

// run runs each cell of the row once.
func (r *row) run() {
	r.t.Helper()
	r.cells = nil
	paused := watchPauses(r.t)
	for i := range shapes {
		r.cells = append(r.cells, r.start(i))
	}
	for i, c := range r.cells {
		c.await(shapes[i].processes)
		if pid := c.findHoldfast(r.server.URL); pid != 0 && strings.Contains(r.event.name, "warden") {
			// What the system may give its number to later is another process.
			if warden := wardenOf(r.t, pid); warden != 0 {
				c.warden, _ = os.FindProcess(warden) // never fails
			}
		}
		c.rival = start(r.t, r.server.URL, "run", "-v", "-w", "60", c.name, "--", "sh", "-c",
			`echo "$HOLDFAST_FENCING_TOKEN $$" >>`+c.dir+`/marks; sleep 0.2`)
	}
	for _, c := range r.cells {
		c.rival.awaitTurn()
	}
	r.event.hit(r)
	for _, c := range r.cells {
		r.jobs.Add(1)
		r.late.Add(int64(c.check(r.event, paused)))
	}
	r.proxy.Heal()
}

// watchPauses measures how late timers fire on this machine. It returns a
// function that tells the worst by then.
func watchPauses(t *testing.T) func() time.Duration {
	const every = 5 * time.Millisecond
	var worst atomic.Int64
	go func() { // ends with the test
		for last := time.Now(); t.Context().Err() == nil; {
			time.Sleep(every)
			now := time.Now()
			worst.Store(max(worst.Load(), int64(now.Sub(last)-every)))
			last = now
		}
	}()
	return func() time.Duration { return time.Duration(worst.Load()) }
}

// tooBusy is a pause of the machine that explains what a test of it cannot
// tell from a fault: part of the time that there is to kill a job.
const tooBusy = cellTTL / 40

// start starts the job of one shape.
func (r *row) start(shape int) *cell {
	s := shapes[shape]
	c := &cell{t: r.t, shape: s.name, dir: r.t.TempDir(), name: "job-" + strconv.Itoa(shape)}
	for name, text := range scripts {
		write(r.t, filepath.Join(c.dir, name), text)
	}
	write(r.t, filepath.Join(c.dir, "shape.sh"), "d=${0%/*}; "+s.script)
	args := append([]string{"run", "--ttl", cellTTL.String(), "--kill-after", cellKillAfter.String()}, r.event.flags...)
	args = append(args, c.name, "--", "sh", filepath.Join(c.dir, "shape.sh"))
	store := "redis://" + r.proxy.Addr()
	if r.event.terminal {
		c.term = startTerminal(r.t, store, "trap : INT; holdfast "+strings.Join(args, " ")+`; echo "status $?"`)
	} else {
		c.holder = start(r.t, store, args...)
	}
	return c
}

// findHoldfast returns the process that holds the lock; 0 if nobody does any
// more: a machine that is busy enough makes a holder give up.
func (c *cell) findHoldfast(store string) int {
	c.t.Helper()
	if s := show(c.t, store, c.name); len(s.Holders) > 0 {
		return s.Holders[0].PID
	}
	return 0
}

// awaitTurn waits until p waits for the lock, or need not any more.
func (p *process) awaitTurn() {
	p.t.Helper()
	eventually(p.t, "the rival waits", func() bool {
		select {
		case <-p.done:
			return true
		default:
			return strings.Contains(read(p.t, p.stderr), "waiting")
		}
	})
}

// await waits until n processes of the job have left marks.
func (c *cell) await(n int) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("%s: %d processes leave marks", c.shape, n), func() bool {
		seen := map[string]bool{}
		for _, line := range c.marks() {
			seen[line] = true
		}
		return len(seen) >= n
	})
}

// marks returns the lines in the order in which they were written, each with a
// token and a process.
func (c *cell) marks() []string {
	data, err := os.ReadFile(filepath.Join(c.dir, "marks"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// check waits for the rival and looks at what the job has left. It returns how
// many marks beside the rival a pause of the machine explains.
func (c *cell) check(e event, paused func() time.Duration) (late int) {
	c.t.Helper()
	status := ""
	if e.name != "STOP" {
		status = c.status()
	}
	atEnd := len(c.marks())
	if got := c.rival.wait(); got != 0 && (!e.lenient || got != 79) { // its key may have been deleted, too
		c.t.Errorf("%s: the rival ends with %d", c.shape, got)
	}
	if e.name == "STOP" {
		c.signal(syscall.SIGCONT)
		status = c.status()
	}
	gaveUp := status == "79" && strings.Contains(c.messages(), "the store does not answer")
	if !slices.Contains(e.statuses, status) && (!gaveUp || paused() <= tooBusy) {
		c.t.Errorf("%s: status %s, want one of %s", c.shape, status, e.statuses)
	}
	if late = c.late(e, atEnd); late > 0 {
		text := fmt.Sprintf("%s: the job left %d marks after the first of its rival; the machine paused for %s", c.shape, late, paused())
		if paused() > tooBusy {
			c.t.Log(text)
		} else {
			c.t.Error(text)
		}
	}
	if left := processesOf(c.t, c.dir); len(left) > 0 {
		c.t.Errorf("%s: %d processes outlive their lock: %v", c.shape, len(left), left)
		for _, pid := range left {
			kill(c.t, pid)
		}
	}
	return late
}

// messages returns what holdfast has said.
func (c *cell) messages() string {
	if c.holder == nil {
		return c.term.text()
	}
	return read(c.t, c.holder.stderr)
}

// status returns holdfast's exit status.
func (c *cell) status() string {
	c.t.Helper()
	if c.holder != nil {
		return strconv.Itoa(c.holder.wait())
	}
	var status string
	eventually(c.t, c.shape+": holdfast ends", func() bool {
		_, after, found := strings.Cut(c.term.text(), "status ")
		status, _, _ = strings.Cut(after, "\r\n")
		return found
	})
	return status
}

// late returns how many marks processes of the job have left after the first
// of the rival or, where the rival may be there before the job is told, after
// the end of holdfast, when there were atEnd of them.
func (c *cell) late(e event, atEnd int) (late int) {
	c.t.Helper()
	marks := c.marks()
	token := func(mark string) string { return strings.Fields(mark)[0] }
	ours := token(marks[0])
	from := slices.IndexFunc(marks, func(m string) bool { return token(m) != ours })
	if from < 0 {
		c.t.Fatalf("%s: no mark of the rival", c.shape)
	}
	if e.lenient {
		from = max(from, atEnd)
	}
	for _, m := range marks[from:] {
		if token(m) == ours {
			late++
		}
	}
	return late
}

// stopStore stops the server until all holders have ended.
func (r *row) stopStore() {
	r.server.Stop()
	defer r.server.Cont()
	for _, c := range r.cells {
		c.status()
	}
}

// deleteKeys deletes the locks. Those who have them are told with the next
// renewal.
func (r *row) deleteKeys() {
	deleted := time.Now()
	for _, c := range r.cells {
		redis(r.t, r.server, "DEL", c.name)
	}
	for _, c := range r.cells {
		c.status()
		const slack = 2 * time.Second // of a busy machine, for all cells together
		if took := time.Since(deleted); took > cellTTL/3+cellKillAfter+slack {
			r.t.Errorf("%s: the job was told of the deletion, and ended, only after %s", c.shape, took)
		}
	}
}

func (r *row) signal(sig syscall.Signal) {
	for _, c := range r.cells {
		c.signal(sig)
	}
}

// signal sends a signal to holdfast, which may have given up on a busy machine.
func (c *cell) signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.holder.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Error(err)
	}
}

// interrupt presses Ctrl-C.
func (r *row) interrupt() {
	for _, c := range r.cells {
		c.term.press(ctrlC)
	}
}

// wardenOf returns the process that the command of a holdfast is below; 0 if
// holdfast has ended.
func wardenOf(t *testing.T, pid int) int {
	t.Helper()
	warden := 0
	eventually(t, "there is a warden", func() bool {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // of each thread
		for _, list := range lists {
			data, _ := os.ReadFile(list)
			for _, child := range strings.Fields(string(data)) {
				if line, _ := os.ReadFile("/proc/" + child + "/cmdline"); bytes.Contains(line, []byte("\x00__warden\x00")) {
					warden, _ = strconv.Atoi(child)
				}
			}
		}
		_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		return warden != 0 || err != nil
	})
	return warden
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("there is no process to kill: %d", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		t.Error(err)
	}
}

// processesOf returns the processes that live and have a word in their
// arguments.
func processesOf(t *testing.T, word string) (pids []int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		// Nothing is in it any more if the process waits to be reaped.
		if line, _ := os.ReadFile(file); bytes.Contains(line, []byte(word)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
