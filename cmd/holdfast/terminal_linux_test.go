package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal is a pseudo-terminal with a shell script in it.
type terminal struct {
	t      *testing.T
	keys   *os.File
	mu     sync.Mutex // guards screen
	screen bytes.Buffer
}

// startTerminal runs a script in a session and a terminal of its own.
func startTerminal(t *testing.T, store, script string) *terminal {
	t.Helper()
	return startWindow(t, 0, store, script)
}

// startWindow is startTerminal for a window with a width; if it is 0, the width is unknown.
func startWindow(t *testing.T, columns int, store, script string, env ...string) *terminal {
	t.Helper()
	// Without O_NONBLOCK the file could not be closed while it is read.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatalf("open /dev/ptmx: %v", err)
	}
	term := &terminal{t: t, keys: os.NewFile(uintptr(fd), "ptmx")}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.Env = append(append(os.Environ(), "TERM=xterm", "HOLDFAST_STORE="+store), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	term.resize(columns)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close()
	read := make(chan struct{})
	go func() { // ends when the terminal is closed; the cleanup waits for it
		defer close(read)
		term.record()
	}()
	t.Cleanup(func() {
		// Hanging up ends what still runs in the terminal.
		_ = term.keys.Close()
		<-read
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("screen:\n%s", term.text())
		}
	})
	return term
}

// record copies the output to the screen until the terminal is closed.
func (term *terminal) record() {
	buffer := make([]byte, 4096)
	for {
		n, err := term.keys.Read(buffer)
		term.mu.Lock()
		term.screen.Write(buffer[:n])
		term.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.screen.String()
}

// resize changes the width of the window.
func (term *terminal) resize(columns int) {
	term.t.Helper()
	term.window(columns, 24)
}

// window gives the window another size.
func (term *terminal) window(columns, rows int) {
	term.t.Helper()
	conn, err := term.keys.SyscallConn() // Fd would make the file block
	if err == nil {
		err = conn.Control(func(fd uintptr) {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)})
		})
	}
	if err != nil {
		term.t.Fatal(err)
	}
}

// await waits for a line on the screen, or the end of one.
func (term *terminal) await(line string) {
	term.t.Helper()
	eventually(term.t, "the screen shows "+line, func() bool {
		return strings.Contains(term.text(), line+"\r\n") // maybe after the echo of keys
	})
}

// press types keys.
func (term *terminal) press(keys string) {
	term.t.Helper()
	if _, err := term.keys.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

// TestTerminal checks that the command can read from the terminal and gets the signals of its keys,
// and that the shell has the terminal back afterwards.
func TestTerminal(t *testing.T) {
	t.Parallel()
	t.Run("read", func(t *testing.T) {
		t.Parallel()
		term := startTerminal(t, sqlite(t), `
			holdfast run job -- sh -c 'echo ready; read line; echo "got $line"; exit 4'; echo "status $?"
			read line; echo "shell got $line"`)
		term.await("ready")
		term.press("one\n")
		term.await("got one")
		term.await("status 4")
		term.press("two\n")
		term.await("shell got two")
	})
	t.Run("interrupt", func(t *testing.T) {
		t.Parallel()
		// Only the command is interrupted, and once: if the shell were in the foreground as well,
		// it would end.
		term := startTerminal(t, sqlite(t), `
			holdfast run job -- sh -c 'trap "echo int; exit 9" INT
				echo ready; while :; do sleep 0.02; done'; echo "status $?"
			read line; echo "shell got $line"`)
		term.await("ready")
		term.press(ctrlC)
		term.await("status 9")
		if n := strings.Count(term.text(), "int\r\n"); n != 1 {
			t.Errorf("the command was interrupted %d times", n)
		}
		term.press("two\n")
		term.await("shell got two")
	})
	t.Run("from the first instant", func(t *testing.T) {
		t.Parallel()
		// A command that came to the foreground only after its start could be stopped for its first
		// use of the terminal. In its stat, field 5 is its own group, and field 8 the group in the
		// foreground.
		const runs = 40
		term := startTerminal(t, sqlite(t), fmt.Sprintf(`
			for i in $(seq %d); do holdfast run job -- cut -d " " -f 5,8 /proc/self/stat; done; echo over`, runs))
		term.await("over")
		lines := strings.Split(strings.TrimSpace(term.text()), "\r\n")
		for _, line := range lines[:len(lines)-1] {
			if group, foreground, _ := strings.Cut(line, " "); group != foreground {
				t.Errorf("group %s begins while %s is in the foreground", group, foreground)
			}
		}
		if len(lines) != runs+1 {
			t.Errorf("%d lines, want %d: %q", len(lines), runs+1, lines)
		}
	})
	t.Run("no program", func(t *testing.T) {
		t.Parallel()
		// A command that cannot be started leaves the terminal to the shell.
		file := filepath.Join(t.TempDir(), "no program")
		write(t, file, "\x7fELF\x00")
		if err := os.Chmod(file, 0o755); err != nil {
			t.Fatal(err)
		}
		term := startTerminal(t, sqlite(t), fmt.Sprintf(`
			holdfast run job -- '%s'; echo "status $?"
			read line; echo "shell got $line"`, file))
		term.await("status 126")
		term.press("one\n")
		term.await("shell got one")
	})
	t.Run("not on stdin", func(t *testing.T) {
		t.Parallel()
		// Here holdfast is in the foreground, and has to pass the signal on.
		term := startTerminal(t, sqlite(t), `
			trap : INT
			</dev/null holdfast run job -- sh -c 'trap "exit 9" INT; echo ready; while :; do sleep 0.02; done'; echo "status $?"`)
		term.await("ready")
		term.press(ctrlC)
		term.await("status 9")
	})
}

// TestSuspend presses Ctrl-Z in a shell with job control. The whole job stops, and continues if the
// lock was not lost meanwhile.
func TestSuspend(t *testing.T) {
	t.Parallel()
	t.Run("kept", func(t *testing.T) {
		t.Parallel()
		term := startTerminal(t, sqlite(t), `set -m
			holdfast run job -- sh -c 'echo ready; read line; echo "got $line"; exit 4'; echo "status $?"
			read line
			fg >/dev/null; echo "status $?"
			read line; echo "shell got $line"`)
		term.await("ready")
		term.press(ctrlZ)
		term.await("status 148")
		term.press("go on\n")
		eventually(t, "the command reads again", func() bool {
			term.press("one\n")
			time.Sleep(50 * time.Millisecond) // a typist's pause
			return strings.Contains(term.text(), "\ngot one\r\n")
		})
		term.await("status 4")
		term.press("two\n")
		eventually(t, "the shell reads", func() bool { return strings.Contains(term.text(), "shell got ") })
	})
	for what, command := range map[string]string{
		"lost":         "holdfast run --ttl 1s job -- workload -deaf -depth 1 %s",
		"not on stdin": "holdfast run --ttl 1s job -- workload -deaf -depth 1 %s </dev/null",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			store, file := sqlite(t), filepath.Join(t.TempDir(), "marks")
			term := startTerminal(t, store, fmt.Sprintf(`set -m
				%s; echo "status $?"
				read line
				fg >/dev/null; echo "status $?"`, fmt.Sprintf(command, file)))
			pids := awaitMarks(t, file, 2)
			term.press(ctrlZ)
			term.await("status 148") // which is 128 + SIGTSTP
			before := len(readMarks(t, file))
			wantRun(t, 0, store, "run", "-w", "20", "job", "--", "true")
			term.press("go on\n")
			term.await("status 79")
			wantGone(t, pids)
			if after := len(readMarks(t, file)); after != before {
				t.Errorf("the command ran on without its lock: %d marks more", after-before)
			}
		})
	}
}
