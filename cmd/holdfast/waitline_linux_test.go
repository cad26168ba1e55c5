package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// linesOf returns the lines of a screen after written was written to it. The screen knows only the
// carriage return, the line feed, and how to erase all behind the cursor. Other control codes stay
// visible.
func linesOf(written string) (shown []string) {
	screen, row, column := [][]rune{nil}, 0, 0
	for written != "" {
		if rest, ok := strings.CutPrefix(written, "\x1b[J"); ok {
			written = rest
			screen = screen[:row+1]
			screen[row] = screen[row][:min(column, len(screen[row]))]
			continue
		}
		r := []rune(written)[0]
		written = written[len(string(r)):]
		switch r {
		case '\r':
			column = 0
		case '\n':
			if row++; row == len(screen) {
				screen = append(screen, nil)
			}
		default:
			for len(screen[row]) <= column {
				screen[row] = append(screen[row], ' ')
			}
			screen[row][column] = r
			column++
		}
	}
	for _, line := range screen {
		shown = append(shown, strings.TrimRight(string(line), " "))
	}
	return shown
}

// lines returns what the terminal shows now.
func (term *terminal) lines() []string { return linesOf(term.text()) }

// awaitLine waits until a line of the screen matches a pattern.
func (term *terminal) awaitLine(pattern string) string {
	term.t.Helper()
	var found string
	eventually(term.t, "a line of the screen matches "+pattern, func() bool {
		for _, line := range term.lines() {
			if regexp.MustCompile("^(?:" + pattern + ")$").MatchString(line) {
				found = line
				return true
			}
		}
		return false
	})
	return found
}

// wantLines waits for the last of the lines, and checks that the terminal shows exactly these.
func (term *terminal) wantLines(want ...string) {
	term.t.Helper()
	term.awaitLine(regexp.QuoteMeta(want[len(want)-1]))
	if got := strings.TrimRight(strings.Join(term.lines(), "\n"), "\n"); got != strings.Join(want, "\n") {
		term.t.Errorf("the screen shows\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// wantNoCodes fails the test if text has codes for a terminal.
func wantNoCodes(t *testing.T, text string) {
	t.Helper()
	if strings.ContainsAny(strings.ReplaceAll(text, "\r\n", "\n"), "\x1b\r") {
		t.Errorf("there are codes of terminals in %q", text)
	}
}

const theLine = `waiting for job: 1st of 1, held [0-9]+s by .*@.* \(pid [0-9]+, sh\): "release 1\.4"`

// TestWaitingLine checks that a wait is one line on the screen, with a running time, and that the
// line is gone before the command writes.
func TestWaitingLine(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"run job", "once job"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			eachStore(t, func(t *testing.T, store string) {
				h := hold(t, store, "job", "--reason", "release 1.4")
				term := startWindow(t, 120, store, "echo before; holdfast "+command+" -- echo ran; echo \"status $?\"")
				first := term.awaitLine(theLine)
				eventually(t, "the time goes on", func() bool { return term.awaitLine(theLine) != first })
				if n := len(term.lines()); n != 2 {
					t.Errorf("the screen has %d lines: %q", n, term.lines())
				}
				h.finish()
				term.wantLines("before", "ran", "status 0")
			})
		})
	}
}

// TestWaitingLineOfOthers checks that the commands that only acquire the lock show the same line,
// and erase it before they print on the same screen.
func TestWaitingLineOfOthers(t *testing.T) {
	t.Parallel()
	for command, prints := range map[string]string{
		"once begin job -w 1h":                  "do",
		"hold job --for 1h --reason freeze":     "job is held for 1h, until .*: holdfast release .job. ends that",
		"acquire job --pid $$ | grep -c export": "[0-9]+",
	} {
		t.Run(strings.Fields(command)[0], func(t *testing.T) {
			t.Parallel()
			store := sqlite(t)
			h := hold(t, store, "job", "--reason", "release 1.4", "--label", "x=y")
			term := startWindow(t, 200, store, "holdfast "+command+"; echo \"status $?\"")
			term.awaitLine(theLine)
			h.finish()
			term.awaitLine("status 0")
			if got := term.lines(); !regexp.MustCompile("^(?:"+prints+")$").MatchString(got[0]) || got[1] != "status 0" {
				t.Errorf("the screen shows %q, want %s", got, prints)
			}
		})
	}
}

// TestWaitingLineFits checks that the line is as long as the window is wide, and is drawn again
// when the width changes.
func TestWaitingLineFits(t *testing.T) {
	t.Parallel()
	store := sqlite(t)
	h := hold(t, store, "job", "--reason", "release 1.4")
	term := startWindow(t, 40, store, "holdfast run job -- true; echo over")
	if line := []rune(term.awaitLine(`job: 1st of 1, held [0-9]+s by .*\.\.\.`)); len(line) > 39 {
		t.Errorf("%q takes %d columns of 40", string(line), len(line))
	}
	term.resize(120)
	term.awaitLine(theLine)
	term.resize(20)
	term.awaitLine(`job: 1st of 1, h\.\.\.`)
	h.finish()
	term.wantLines("over")
}

// TestWaitingLineAndSignals checks that Ctrl-C and Ctrl-Z erase the line, and that the line appears
// again when the job continues in the foreground.
func TestWaitingLineAndSignals(t *testing.T) {
	t.Parallel()
	store := sqlite(t)
	h := hold(t, store, "job", "--reason", "release 1.4")
	t.Run("interrupt", func(t *testing.T) {
		term := startWindow(t, 120, store, `trap : INT; holdfast run job -- echo ran; echo "status $?"; read line; echo "shell got $line"`)
		term.awaitLine(theLine)
		term.press(ctrlC)
		term.wantLines("holdfast: run: ended by a signal while waiting for the lock", "status 130")
		term.press("one\n")
		term.await("shell got one")
	})
	t.Run("interrupt wait", func(t *testing.T) {
		term := startWindow(t, 120, store, `trap : INT; holdfast wait job; echo "status $?"; read line; echo "shell got $line"`)
		term.awaitLine(`waiting for job: held [0-9]+s by .*@.* \(pid [0-9]+, sh\): "release 1\.4"`)
		term.press(ctrlC)
		term.wantLines("status 130")
	})
	t.Run("suspend", func(t *testing.T) {
		term := startWindow(t, 120, store, `set -m
			holdfast run job -- echo ran; echo "status $?"
			read line
			fg >/dev/null; echo "status $?"
			read line; echo "shell got $line"`)
		term.awaitLine(theLine)
		term.press(ctrlZ)
		term.wantLines("status 148")
		term.press("go on\n")
		term.awaitLine(theLine)
		h.finish()
		term.wantLines("status 148", "go on", "ran", "status 0")
		term.press("one\n")
		term.await("shell got one")
	})
}

// TestWaitingInTheBackground checks that a job in the background does not write to the screen, and
// is not stopped for writing, even if the terminal does that. In the foreground it shows its line.
func TestWaitingInTheBackground(t *testing.T) {
	t.Parallel()
	store, file := sqlite(t), filepath.Join(t.TempDir(), "pid")
	h := hold(t, store, "job", "--reason", "release 1.4")
	term := startWindow(t, 120, store, `set -m; stty tostop
		holdfast run job -- echo ran & echo $! >`+file+`
		read line
		fg >/dev/null; echo "status $?"`)
	eventually(t, "it waits", func() bool { return show(t, store, "job").QueueLength == 1 })
	time.Sleep(1500 * time.Millisecond) // enough time to draw
	if text := term.text(); text != "" {
		t.Errorf("the screen has %q", text)
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(read(t, file))); err != nil || stateOf(t, pid) == "T" {
		t.Error("the job was stopped")
	}
	term.press("go on\n")
	term.awaitLine(theLine)
	h.finish()
	term.wantLines("go on", "ran", "status 0")
}

// TestWaitingWithoutColours: the line has no colours, which NO_COLOR could switch off. A terminal
// that can do nothing and a pipe get one line without codes for a terminal. With -v each change is
// logged, with -q nothing.
func TestWaitingWithoutColours(t *testing.T) {
	t.Parallel()
	store := sqlite(t)
	h := hold(t, store, "job", "--reason", "release 1.4")
	colour := startWindow(t, 120, store, "holdfast run job -- echo ran", "NO_COLOR=1")
	colour.awaitLine(theLine)
	dumb := startWindow(t, 120, store, "holdfast run job -- echo ran", "TERM=dumb")
	dumb.awaitLine(`holdfast: waiting for job: 2nd of 2, held ([0-9]+s )?by .*: "release 1\.4"`)
	piped := startWindow(t, 120, store, "holdfast run job -- echo ran 2>&1 | cat")
	piped.awaitLine(`holdfast: waiting for job: 3rd of 3, .*`)
	quiet := startWindow(t, 120, store, "holdfast run -q job -- echo ran")
	eventually(t, "four wait", func() bool { return show(t, store, "job").QueueLength == 4 })
	verbose := startWindow(t, 120, store, "holdfast run -v job -- echo ran 2>&1 | cat")
	verbose.awaitLine(`holdfast: waiting for job: 5th of 5, .*`)
	quiet.press(ctrlC)
	verbose.awaitLine(`holdfast: waiting for job: 4th of 4, .*`)
	h.finish()
	for _, term := range []*terminal{colour, dumb, piped, verbose} {
		term.awaitLine("ran")
	}
	if rendition := regexp.MustCompile("\x1b\\[[0-9;]*m"); rendition.MatchString(colour.text()) {
		t.Errorf("there are colours in %q", colour.text())
	}
	colour.wantLines("ran")
	if text := quiet.text(); strings.Contains(text, "waiting for job") {
		t.Errorf("-q says %q", text)
	}
	for _, term := range []*terminal{dumb, piped, verbose} {
		wantNoCodes(t, term.text())
		if n := strings.Count(term.text(), "waiting for job: "); n < 1 || term != verbose && n > 1 {
			t.Errorf("%d lines tell of the wait in\n%s", n, term.text())
		}
	}
}

// TestMessagesAboveTheLine: the store goes away and comes back while a line is on the screen.
// Messages above the line report both, and so does the line.
func TestMessagesAboveTheLine(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t, "--appendonly", "yes")
	h := hold(t, server.URL, "job", "--ttl", "2m")
	term := startWindow(t, 200, server.URL, "holdfast run job -- echo ran; echo \"status $?\"")
	term.awaitLine(`waiting for job: 1st of 1, .*`)
	server.Stop()
	term.awaitLine(`waiting for job: the store does not answer: .*`)
	away := term.awaitLine(`holdfast: still waiting: .*`)
	server.Cont()
	back := term.awaitLine(`holdfast: the store answers again, after .*`)
	term.awaitLine(`waiting for job: 1st of 1, .*`)
	h.finish()
	term.wantLines(away, back, "ran", "status 0")
}

// TestFullScreen checks that a program that draws on the whole screen gets the same keys and writes
// the same under run as without, even after a waiting line.
func TestFullScreen(t *testing.T) {
	t.Parallel()
	store := sqlite(t)
	var screens []string
	for _, prefix := range []string{"", "holdfast run job -- "} {
		file := filepath.Join(t.TempDir(), "text")
		h := hold(t, store, "job")
		term := startWindow(t, 80, store, prefix+"vi -u NONE -N -i NONE "+file+"; echo \"status $?\"; stty -a | grep -o '.icanon'")
		if prefix != "" {
			term.awaitLine(`waiting for job: .*`)
		}
		h.finish()
		h.want(0)
		eventually(t, "the editor has drawn its screen", func() bool { return strings.Count(term.text(), "~") > 10 })
		term.press("ihello\x1b:wq\r")
		term.await("status 0")
		term.await(" icanon")
		if text := read(t, file); text != "hello\n" {
			t.Errorf("%s the editor has written %q", prefix, text)
		}
		_, drawn, _ := strings.Cut(term.text(), "\x1b[?1049h") // the editor writes this first
		screens = append(screens, strings.ReplaceAll(drawn, file, "FILE"))
	}
	if screens[0] != screens[1] || screens[0] == "" {
		t.Errorf("without holdfast it draws\n%q\nwith it\n%q", screens[0], screens[1])
	}
}

// TestReaderOfMessagesGoesAway checks that neither the wait nor the job ends with the program that
// reads holdfast's messages.
func TestReaderOfMessagesGoesAway(t *testing.T) {
	t.Parallel()
	store, file := sqlite(t), filepath.Join(t.TempDir(), "ran")
	h := hold(t, store, "job")
	term := startWindow(t, 80, store, fmt.Sprintf(`{ { holdfast run -v job -- touch %s; echo "status $?" >&3; } 2>&1 >/dev/null | head -n 1; } 3>&1`, file))
	term.awaitLine(`holdfast: .*`) // the messages after it have no reader
	eventually(t, "it waits", func() bool { return show(t, store, "job").QueueLength == 1 })
	h.finish()
	term.awaitLine("status 0")
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
