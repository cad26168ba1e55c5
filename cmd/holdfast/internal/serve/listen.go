package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// socketMode lets the user and the group of the server reach its socket.
const socketMode = 0o660

// Listen opens a socket at the address. The caller must close it.
func Listen(ctx context.Context, at net.Addr) (net.Listener, error) {
	if at, isUnix := at.(*net.UnixAddr); isUnix {
		return listenUnix(ctx, at)
	}
	var config net.ListenConfig
	return config.Listen(ctx, at.Network(), at.String())
}

// IsRefused reports whether an error of Listen is about the address itself, so that another attempt
// would fail too. An address that is in use may become free.
func IsRefused(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENOTSOCK)
}

// listenUnix makes a Unix socket, and replaces one without a listener. The socket gets its mode
// before its name, so that other users can never reach it.
func listenUnix(ctx context.Context, at *net.UnixAddr) (net.Listener, error) {
	path := at.Name
	if err := mayTakePlace(ctx, path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".holdfast-") // which no other user can enter
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	made := filepath.Join(dir, "s")
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", made)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	u := &unixListener{Listener: l, addr: at}
	if err = os.Chmod(made, socketMode); err == nil {
		if u.made, err = os.Lstat(made); err == nil {
			err = os.Rename(made, path)
		}
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return u, nil
}

// mayTakePlace returns an error unless path is free, or a socket without a
// listener.
func mayTakePlace(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is left as it is: %w", path, syscall.ENOTSOCK)
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("a program answers at %s already", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) { // it may be full, or another user's
		return fmt.Errorf("it is unknown whether %s is in use: %w", path, err)
	}
	return nil
}

// A unixListener has the name to which its socket was renamed.
type unixListener struct {
	net.Listener
	addr  *net.UnixAddr
	made  fs.FileInfo
	close sync.Once
}

func (l *unixListener) Addr() net.Addr { return l.addr }

// Close removes the socket, unless another server has taken its place.
func (l *unixListener) Close() error {
	l.close.Do(func() {
		if now, err := os.Lstat(l.addr.Name); err == nil && os.SameFile(now, l.made) {
			_ = os.Remove(l.addr.Name)
		}
	})
	return l.Listener.Close()
}

// firstInherited is the number of the first socket that systemd passes on.
const firstInherited = 3

// Inherited returns the sockets that systemd has opened for this process, as sd_listen_fds(3)
// says. It removes the variables that name them from the environment. The caller must close the
// listeners, even those that are returned with an error.
func Inherited(getenv func(string) string) ([]net.Listener, error) {
	count, pid := getenv("LISTEN_FDS"), getenv("LISTEN_PID")
	for _, name := range []string{"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name) // fails for invalid names only
	}
	if count == "" || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > 1000 {
		return nil, fmt.Errorf("LISTEN_FDS: %q is not a number of sockets", count)
	}
	var all []net.Listener
	for fd := firstInherited; fd < firstInherited+n; fd++ {
		file := os.NewFile(uintptr(fd), "socket "+strconv.Itoa(fd)+" of LISTEN_FDS")
		l, err := net.FileListener(file) // a copy that child processes do not inherit
		_ = file.Close()
		if err != nil {
			return all, fmt.Errorf("LISTEN_FDS: socket %d is not one to listen on: %w", fd, err)
		}
		if u, isUnix := l.(*net.UnixListener); isUnix {
			u.SetUnlinkOnClose(false) // it is systemd's
		}
		all = append(all, l)
	}
	return all, nil
}
