package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shapes are the ways in which processes of a job leave its process group or lose their parents.
// Each is a script, with the number of its processes that write marks. The command itself ends when
// a signal asks it to.
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

// scripts are the files that the shapes run.
var scripts = map[string]string{
	// All processes append to one file, so that the order of its lines is their order in time.
	"mark.sh": `while :; do echo "$HOLDFAST_FENCING_TOKEN $$" >>"${0%/*}/marks"; sleep ${PAUSE-0.05}; done`,
	"tree.sh": `trap '' TERM INT HUP QUIT
		PAUSE=0.2
		rest=$(($1 - 1)); left=$((rest / 2)); right=$((rest - left))
		if [ $left -gt 0 ]; then sh $0 $left & fi
		if [ $right -gt 0 ]; then setsid sh $0 $right & fi
		. "${0%/*}/mark.sh"`,
	// On TERM it starts another copy of itself.
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
	warden    *os.Process // of the job; nil if the job has ended
}

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
		// Ctrl-C would discard what was printed and not read, the status too.
		c.term = startTerminal(r.t, store, "trap : INT; stty noflsh; holdfast "+strings.Join(args, " ")+`; echo "status $?"`)
	} else {
		c.holder = start(r.t, store, args...)
	}
	return c
}

// findHoldfast returns the process ID of the lock's holder, or 0 if there is none: on a machine
// that is busy enough the holder gives up.
func (c *cell) findHoldfast(store string) int {
	c.t.Helper()
	if s := show(c.t, store, c.name); len(s.Holders) > 0 {
		return s.Holders[0].PID
	}
	return 0
}

// awaitTurn waits until p waits for the lock or has ended.
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

// check waits for the rival and checks what the job has left. It returns the number of marks after
// the rival's first that a pause of the machine explains.
func (c *cell) check(e event, paused func() time.Duration) (late int) {
	c.t.Helper()
	status := ""
	if e.name != "STOP" {
		status = c.status()
	}
	atEnd := len(c.marks())
	if got := c.rival.wait(); got != 0 && (!e.lenient || got != 79) { // the rival's key may have been deleted, too
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

// messages returns the messages of holdfast.
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

// late returns the number of marks that the job's processes wrote after the rival's first. For a
// lenient event it counts only those after the end of holdfast, when there were atEnd marks.
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

// signal sends a signal to holdfast, which may have ended already on a busy machine.
func (c *cell) signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.holder.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Error(err)
	}
}
