//go:build unix && !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package keep

import "golang.org/x/sys/unix"

// watch looks at the process: this system does not tell of its end.
func (s *Script) watch() error {
	go s.poll(func() bool { return unix.Kill(s.PID, 0) == nil }) // ends with the process
	return nil
}
