//go:build unix

package keeper

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// A Script is the process for which a lease is kept.
type Script struct {
	PID  int
	gone chan struct{}
	send func(syscall.Signal) error
}

var errEnded = errors.New("there is no such process")

// Watch watches a process of this user until it has ended. Once Watch has returned, a later
// process with the same PID is not mistaken for it.
func Watch(pid int) (*Script, error) {
	switch {
	case pid <= 0:
		return nil, fmt.Errorf("%d: want the number of a process, as $$ is in a shell", pid)
	case pid == os.Getpid():
		return nil, fmt.Errorf("%d: it is holdfast itself, which ends now: want $$, the shell's own number", pid)
	}
	switch err := syscall.Kill(pid, 0); {
	case errors.Is(err, syscall.EPERM):
		return nil, fmt.Errorf("%d: it is another user's process, which could not be notified of a loss", pid)
	case err != nil:
		return nil, fmt.Errorf("%d: %w", pid, errEnded)
	}
	s := &Script{PID: pid, gone: make(chan struct{})}
	s.send = func(sig syscall.Signal) error { return syscall.Kill(pid, sig) }
	if err := s.watch(); err != nil {
		return nil, fmt.Errorf("%d: %w", pid, err)
	}
	return s, nil
}

// Gone is closed when the process has ended, whether it was reaped or not.
func (s *Script) Gone() <-chan struct{} { return s.gone }

// HasEnded reports whether the process has ended.
func (s *Script) HasEnded() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// Signal sends sig to the process, unless it has ended.
func (s *Script) Signal(sig syscall.Signal) {
	if !s.HasEnded() {
		_ = s.send(sig) // it may end now
	}
}

// follow waits in the background for the end of the process. wait returns the number of events
// that the system has reported, or an error; a signal may interrupt it.
func (s *Script) follow(wait func() (int, error)) {
	go func() { // ends with the process
		defer close(s.gone)
		for {
			if n, err := wait(); n > 0 || err != nil && !errors.Is(err, syscall.EINTR) {
				return
			}
		}
	}()
}
