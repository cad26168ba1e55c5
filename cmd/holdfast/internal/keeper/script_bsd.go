//go:build unix && !linux

package keeper

import (
	"errors"

	"golang.org/x/sys/unix"
)

// watch has the kernel report the end of the process.
func (s *Script) watch() error {
	kq, err := unix.Kqueue()
	if err != nil {
		return err
	}
	unix.CloseOnExec(kq)
	var change unix.Kevent_t
	unix.SetKevent(&change, s.PID, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change.Fflags = unix.NOTE_EXIT
	if _, err := unix.Kevent(kq, []unix.Kevent_t{change}, nil, nil); err != nil {
		_ = unix.Close(kq)
		if errors.Is(err, unix.ESRCH) {
			return errEnded
		}
		return err
	}
	s.follow(func() (int, error) { return unix.Kevent(kq, nil, make([]unix.Kevent_t, 1), nil) })
	return nil
}
