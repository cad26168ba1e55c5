//go:build unix

package supervise

import (
	"sync"

	"golang.org/x/sys/unix"
)

// A reaper waits for all children of this process: its wardens, one at a time, the children that
// it had before it became this program, and adopted orphans.
type reaper struct {
	mu      sync.Mutex // guards the rest
	running bool       // reap runs; otherwise there are no children
	warden  int        // 0 if it is dead
	reaped
}

// A reaped tells one job what it has to know of the children.
type reaped struct {
	wardenDead chan struct{} // closed when all that was below the warden is below this process
	childless  chan struct{} // closed when there are no more children
}

// watch reaps until there are no more children. The result is for a job whose warden this process
// has started.
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

// forget is for a warden that was reaped elsewhere.
func (r *reaper) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warden = 0
}

// reap returns when there are no more children and no warden was started meanwhile.
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

// note handles a child that has stopped or ended. It continues a stopped warden, which has to
// reap the job and to see its end.
func (r *reaper) note(pid int, ws unix.WaitStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case pid != r.warden:
	case ws.Stopped():
		_ = unix.Kill(pid, unix.SIGCONT) // an unreaped child still has its PID
	default:
		r.warden = 0
		close(r.wardenDead)
	}
}
