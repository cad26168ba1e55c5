//go:build unix && !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package keeper

import "golang.org/x/sys/unix"

// watch polls: this system does not report the end of a process.
func (s *Script) watch() error {
	go s.poll(func() bool { return unix.Kill(s.PID, 0) == nil }) // ends with the process
	return nil
}
