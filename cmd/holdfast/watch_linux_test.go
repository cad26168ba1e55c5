package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

const (
	entered = "\x1b[?1049h\x1b[?25l" // the other screen, no cursor
	left    = "\x1b[?25h\x1b[?1049l"
)

// shows waits until a text was written to the screen.
func (term *terminal) shows(text string) {
	term.t.Helper()
	eventually(term.t, "the screen shows "+text, func() bool { return strings.Contains(term.text(), text) })
}

// now returns the text that was drawn last.
func (term *terminal) now() string {
	text := term.text()
	return text[strings.LastIndex(text, "\x1b[H")+1:]
}

// endsWatch follows watch in a script. It prints the status, and whether the terminal has echo and
// line input again.
const endsWatch = `; echo "status $?"; stty -a | grep -o ' -\?\(echo\|icanon\)\b' | tr -d '\n'; echo; read line; echo "shell got $line"`

// restored checks the status of watch, and that the shell has its terminal back.
func (term *terminal) restored(status int) {
	term.t.Helper()
	term.await(fmt.Sprintf("%sstatus %d", left, status))
	term.shows("icanon")
	term.shows("echo")
	if strings.Contains(term.text(), " -icanon") || strings.Contains(term.text(), " -echo") {
		term.t.Fatalf("the terminal was not restored: %q", term.text())
	}
	term.press("one\n")
	term.await("shell got one")
}

// TestWatchTable checks that watch shows locks on a terminal, and restores the terminal however it
// ends.
func TestWatchTable(t *testing.T) {
	t.Parallel()
	store := sqlite(t)
	hold(t, store, "orders", "--reason", "a nightly run")
	hold(t, store, "stock")
	enqueue(t, 1, store, "stock", "stock", "--", "true")
	for what, end := range map[string]struct {
		press  string
		signal syscall.Signal
		status int
	}{
		"q": {press: "q"}, "ctrl-c": {press: ctrlC},
		"term": {signal: syscall.SIGTERM, status: 143}, "quit": {signal: syscall.SIGQUIT, status: 131}, "hup": {signal: syscall.SIGHUP, status: 129},
	} {
		t.Run(what, func(t *testing.T) { // one after the other: the waiter does not wait for ever
			file := filepath.Join(t.TempDir(), "pid")
			term := startTerminal(t, store, fmt.Sprintf(`trap : INT; sh -c 'echo $$ >%s; exec holdfast watch'%s`, file, endsWatch))
			term.window(120, 30)
			term.shows(entered)
			term.shows("a nightly run")
			if now := term.now(); strings.Index(now, "\nstock") > strings.Index(now, "\norders") {
				t.Errorf("the lock that is waited for is not the first: %q", now)
			}
			if end.press != "" {
				term.press(end.press)
			} else {
				var pid int
				if _, err := fmt.Sscan(read(t, file), &pid); err != nil {
					t.Fatal(err)
				}
				if err := syscall.Kill(pid, end.signal); err != nil {
					t.Fatal(err)
				}
			}
			term.restored(end.status)
		})
	}
	t.Run("suspend", func(t *testing.T) {
		t.Parallel()
		term := startTerminal(t, store, `set -m
			holdfast watch; echo "status $?"
			read line; echo "shell got $line"
			fg >/dev/null`+endsWatch)
		term.shows("orders")
		term.press(ctrlZ)
		term.await(left + "status 148")
		drawn := strings.Count(term.text(), "\x1b[H")
		term.press("between\n")
		term.await("shell got between")
		term.shows("shell got between\r\n" + entered)
		eventually(t, "it draws again", func() bool { return strings.Count(term.text(), "\x1b[H") > drawn+1 })
		term.press("q")
		term.restored(0)
	})
	t.Run("small and plain", func(t *testing.T) {
		t.Parallel()
		term := startTerminal(t, store, `NO_COLOR=1 holdfast watch`+endsWatch)
		term.window(40, 4)
		term.shows("stock ")
		eventually(t, "the table fits", func() bool {
			now := term.now()
			return strings.Count(now, "\r\n") == 3 && strings.Contains(now, "\nstock ") && strings.Contains(now, "\norders ")
		})
		term.window(40, 3)
		term.shows("... and 2 more")
		term.window(120, 30)
		term.shows("a nightly run")
		if style := regexp.MustCompile(`\x1b\[[0-9;]*m`).FindString(term.text()); style != "" {
			t.Errorf("with NO_COLOR it has %q", style)
		}
		term.press("q")
		term.restored(0)
	})
}

// TestWatchOutage checks that watch reports an outage of the store, on a terminal and in lines, and
// continues.
func TestWatchOutage(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	redis(t, server, "SET", "job", "mine")
	hold(t, server.URL, "other")
	lines := start(t, server.URL, "watch", "--interval", "0.1")
	has := func(text string) {
		t.Helper()
		eventually(t, "a line with "+text, func() bool {
			data, err := os.ReadFile(lines.stdout)
			return err == nil && strings.Contains(string(data), text)
		})
	}
	term := startTerminal(t, server.URL, `holdfast watch --interval 0.1`+endsWatch)
	term.window(100, 24)
	term.shows("other ")
	has(`{"change":"appeared","name":"other"`)
	server.Kill()
	term.shows("the store has not answered for ")
	has(`{"change":"store_away","reason":"`)
	server.Restart()
	has(`{"change":"store_back"}`)
	eventually(t, "it is shown no more", func() bool { return !strings.Contains(term.now(), "not answered") })
	term.press("q")
	term.restored(0)
	lines.signal(syscall.SIGTERM)
	lines.want(143)
}
