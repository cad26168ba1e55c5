//go:build unix

package supervise

import (
	"sync"

	"golang.org/x/sys/unix"
)

// A reaper waits for all children of this process: its wardens, of which there is one
// at a time, those that it had before it became this program, and orphans that it has
// adopted.
type reaper struct {
	mu      sync.Mutex // guards the rest
	running bool       // somebody waits; otherwise there are no children
	warden  int        // 0 if it is dead
	reaped
}

// reaped tells what one job has to know of the children.
type reaped struct {
	wardenDead chan struct{} // closed when all that was below the warden is below this process
	childless  chan struct{} // closed when there are no children any more
}

// watch reaps until there are no children any more, and tells of a warden that this
// process has started.
func (r *reaper) watch(warden int) reaped {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warden, r.wardenDead = warden, make(chan struct{})
	if !r.running {
		r.running, r.childless = true, make(chan struct{})
		go r.reap() // ends with the last child, or with this process
	}
	return r.reaped
}

// forget is for a warden that was reaped by somebody else.
func (r *reaper) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warden = 0
}

// reap returns when there are no children any more, and none was started since that was
// seen.
func (r *reaper) reap() {
	for {
		waitForAll(r.note)
		r.mu.Lock()
		if r.warden == 0 {
			r.running = false
			close(r.childless)
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
	}
}

// note handles a child that has stopped or ended. A stopped warden is continued: it has to reap the job, and to see its end.
func (r *reaper) note(pid int, ws unix.WaitStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case pid != r.warden:
	case ws.Stopped():
		_ = unix.Kill(pid, unix.SIGCONT) // it is this process's, and not reaped
	default:
		r.warden = 0
		close(r.wardenDead)
	}
}
