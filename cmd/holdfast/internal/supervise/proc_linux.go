package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Process is one process of a job.
type Process struct {
	PID  int
	Name string // the kernel's name of its program; "" if unknown

	start  uint64 // when it began, in the kernel's ticks; with PID it identifies the process
	parent int
	group  int
	dead   bool // it has ended, and is waiting to be reaped
}

// String returns p as messages show it.
func (p Process) String() string {
	if p.Name == "" {
		return fmt.Sprintf("pid %d", p.PID)
	}
	return fmt.Sprintf("%s (pid %d)", p.Name, p.PID)
}

// An identity distinguishes a process from a later one with the same PID.
type identity struct {
	pid   int
	start uint64
}

func (p Process) identity() identity { return identity{p.PID, p.start} }

// Look returns the process that has the PID now, and whether it lives.
func Look(pid int) (p Process, lives bool) {
	p, ok := look(pid)
	return p, ok && !p.dead
}

// look returns the process that has the PID now. A process that the kernel hides from this one
// has neither a name nor a start time.
func look(pid int) (p Process, ok bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{PID: pid}, errors.Is(unix.Kill(pid, 0), unix.EPERM)
	}
	return parseStat(data)
}

// parseStat reads a file "stat" of /proc. A program's name may have spaces and
// parentheses in it.
func parseStat(data []byte) (p Process, ok bool) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return p, false
	}
	// As in proc(5), counted from the state, which is the third.
	const state, parent, group, threads, start = 0, 1, 2, 17, 19
	f := strings.Fields(string(data[end+1:]))
	if len(f) <= start {
		return p, false
	}
	var errs [4]error
	var nThreads int
	p.PID, errs[0] = strconv.Atoi(strings.TrimSpace(string(data[:open])))
	p.Name = string(data[open+1 : end])
	p.parent, errs[1] = strconv.Atoi(f[parent])
	p.group, errs[2] = strconv.Atoi(f[group])
	p.start, errs[3] = strconv.ParseUint(f[start], 10, 64)
	nThreads, _ = strconv.Atoi(f[threads])
	// The first thread of a program may have ended before the others.
	p.dead = f[state] == "X" || f[state] == "Z" && nThreads <= 1
	return p, errors.Join(errs[:]...) == nil
}

// below calls visit for the descendants of root, parents before their children, each as soon as
// it is found. It may miss a process whose parent ends meanwhile; the next walk finds that
// process below its new parent.
func below(root Process, childrenOf func(parent int) []int, visit func(Process)) {
	seen := map[int]bool{root.PID: true}
	for queue := []Process{root}; len(queue) > 0; queue = queue[1:] {
		parent := queue[0]
		pids := childrenOf(parent.PID)
		if _, ok := parent.now(); !ok {
			continue // another process has its PID
		}
		for _, pid := range pids {
			p, ok := look(pid)
			isChild := p.parent == parent.PID || p.start == 0 // hidden
			if ok && isChild && !seen[pid] {
				seen[pid] = true
				queue = append(queue, p)
				visit(p)
			}
		}
	}
}

// lister returns a function that returns the children of a process. If the kernel does not list
// them, the function reads all processes of the machine once, for all its calls.
func lister() func(parent int) []int {
	if _, err := os.Stat("/proc/thread-self/children"); err == nil {
		return listedChildren
	}
	return scannedChildren()
}

// scannedChildren reads all processes.
func scannedChildren() func(parent int) []int {
	all := map[int][]int{}
	entries, _ := os.ReadDir("/proc") // without it no process is found
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if p, ok := look(pid); ok {
				all[p.parent] = append(all[p.parent], pid)
			}
		}
	}
	return func(parent int) []int { return all[parent] }
}

// listedChildren reads the kernel's list of each thread of a process.
func listedChildren(parent int) (pids []int) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", parent))
	if err != nil {
		return nil
	}
	for _, task := range tasks {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", parent, task.Name())) // a thread may end
		for _, field := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// isWarden reports whether p is the warden of a job within the job. A process has no arguments
// for a moment while it starts a program, or ends.
func (p Process) isWarden() bool {
	for range 20 {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		if err != nil || len(data) > 0 || !p.Lives() {
			return bytes.HasPrefix(data, []byte("holdfast\x00"+wardenCommand+"\x00"))
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// now returns p as it is now, and false if it has ended, even if another process has its PID.
func (p Process) now() (now Process, ok bool) {
	now, ok = look(p.PID)
	return now, ok && now.start == p.start
}

// Lives reports whether p has not ended since it was found.
func (p Process) Lives() bool {
	now, ok := p.now()
	return ok && !now.dead
}

// isMarked reports whether p was started with mark in its environment.
func (p Process) isMarked(mark string) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID))
	return err == nil && slices.Contains(strings.Split(string(data), "\x00"), mark)
}

// send sends sig to p, or nothing if p has ended. It opens a pidfd before it checks the identity
// of p, so that the PID cannot be reused in between.
func (p Process) send(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	hasFD := err == nil // not before Linux 5.3, nor in some sandboxes
	if hasFD {
		defer unix.Close(fd)
	}
	if _, ok := p.now(); !ok {
		return nil
	}
	if hasFD {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
	if !hasFD || errors.Is(err, unix.ENOSYS) {
		err = unix.Kill(p.PID, sig)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// ProgramOf returns the kernel's name of the program of a process, or "".
func ProgramOf(pid int) string {
	p, _ := look(pid)
	return p.Name
}
