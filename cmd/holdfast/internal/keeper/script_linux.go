package keeper

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

// pollEvery is the interval of polling where the kernel has no pidfds.
const pollEvery = 50 * time.Millisecond

// watch has the kernel report the end of the process, through a pidfd. If there are none, as on
// old kernels and in some sandboxes, it polls, and recognises the process by its start time.
func (s *Script) watch() error {
	p, lives := supervise.Look(s.PID)
	fd, err := unix.PidfdOpen(s.PID, 0)
	switch {
	case !lives, errors.Is(err, unix.ESRCH):
		return errEnded
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return errors.New("it is a thread of a process")
	case err != nil:
		s.follow(func() (ended int, err error) {
			time.Sleep(pollEvery)
			if !p.Lives() {
				ended = 1
			}
			return ended, nil
		})
		return nil
	case !p.Lives():
		_ = unix.Close(fd)
		return errEnded
	}
	s.send = func(sig syscall.Signal) error { return unix.PidfdSendSignal(fd, sig, nil, 0) }
	s.follow(func() (int, error) { return unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1) })
	return nil
}
