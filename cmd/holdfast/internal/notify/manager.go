// Package notify speaks the protocol of sd_notify(3): with the service manager that has
// started this program, and with a command that this program starts.
package notify

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// The variables of the environment.
const (
	NotifyVariable   = "NOTIFY_SOCKET"
	watchdogVariable = "WATCHDOG_USEC"
	pidVariable      = "WATCHDOG_PID"
)

// Forget removes the manager's variables from the environment of child processes, because they
// are about this process.
func Forget() {
	for _, name := range []string{NotifyVariable, watchdogVariable, pidVariable} {
		_ = os.Unsetenv(name) // fails for invalid names only
	}
}

// Environment returns the entries for a command that sends messages to s. The command must report
// at intervals of watchdog or less that it is alive, unless watchdog is 0.
func Environment(s *Socket, watchdog time.Duration) []string {
	if s == nil {
		return nil
	}
	env := []string{NotifyVariable + "=" + s.path}
	if watchdog > 0 {
		env = append(env, watchdogVariable+"="+strconv.FormatInt(watchdog.Microseconds(), 10))
	}
	return env
}

// A Manager is the service manager that has started this program. Messages to a nil Manager are
// dropped.
type Manager struct{ conn net.Conn }

// patience bounds how long a message waits for a manager that does not read. After that the
// message is dropped: nothing depends on it.
const patience = 100 * time.Millisecond

// Find returns the manager that the environment names, or nil if it names none.
func Find(getenv func(string) string) (*Manager, error) {
	name := getenv(NotifyVariable)
	if name == "" {
		return nil, nil
	}
	if name[0] != '/' && name[0] != '@' {
		return nil, fmt.Errorf("%s: %q is neither a path nor an abstract name", NotifyVariable, name)
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", NotifyVariable, err)
	}
	return &Manager{conn}, nil
}

// Watchdog returns the interval at which the manager wants reports that this process is alive, or
// 0 if it wants none.
func Watchdog(getenv func(string) string) time.Duration {
	usec, err := strconv.ParseInt(getenv(watchdogVariable), 10, 64)
	pid := getenv(pidVariable)
	if err != nil || usec <= 0 || usec > int64(24*time.Hour/time.Microsecond) || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return time.Duration(usec) * time.Microsecond
}

// Tell sends one message.
func (m *Manager) Tell(lines ...string) {
	if m == nil {
		return
	}
	_ = m.conn.SetWriteDeadline(time.Now().Add(patience))
	_, _ = m.conn.Write([]byte(strings.Join(lines, "\n")))
}

// Status sends the manager a text for people about the state of this program.
func (m *Manager) Status(format string, arguments ...any) {
	m.Tell("STATUS=" + strings.ReplaceAll(fmt.Sprintf(format, arguments...), "\n", " "))
}

// Ping reports that this process is alive, twice per interval of the watchdog, until stop is
// called.
func (m *Manager) Ping(watchdog time.Duration) (stop func()) {
	if m == nil || watchdog == 0 {
		return func() {}
	}
	done := make(chan struct{})
	go func() { // ends with stop
		ticker := time.NewTicker(watchdog / 2)
		defer ticker.Stop()
		for {
			m.Tell("WATCHDOG=1")
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}
