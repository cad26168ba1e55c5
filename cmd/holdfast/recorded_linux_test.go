package main

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/memlock"
)

var record = flag.Bool("record", false, "write testdata/terminals.txt anew")

// A still is a store whose state never changes.
type still struct {
	driver.Forward
	locks  []lockinfo.LockState
	events []lockinfo.HistoryEvent
}

func (s still) List(_ context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	return func(yield func(lockinfo.LockState, error) bool) {
		for _, lock := range s.locks {
			if strings.HasPrefix(lock.Name, prefix) && !yield(lock, nil) {
				return
			}
		}
	}
}

func (s still) Inspect(_ context.Context, name string) (lockinfo.LockState, error) {
	for _, lock := range s.locks {
		if lock.Name == name {
			return lock, nil
		}
	}
	return lockinfo.LockState{Name: name}, nil
}

func (s still) History(context.Context, string) ([]lockinfo.HistoryEvent, error) {
	return s.events, nil
}

// aNight returns a store at three in the morning: a deployment with a long queue, whose holder
// itself waits for a person, slots in use, and a very long name.
func aNight(t *testing.T) still {
	t.Helper()
	who := func(user, host string, pid int, program, reason string) lockinfo.Holder {
		return lockinfo.Holder{User: user, Host: host, PID: pid, Program: program, Reason: reason}
	}
	held := func(token uint64, mode lockinfo.Mode, since, left time.Duration, h lockinfo.Holder) lockinfo.Holding {
		return lockinfo.Holding{LeaseID: lockinfo.NewLeaseID(), Token: token, Mode: mode, Holder: h, Since: since, ExpiresIn: left}
	}
	lock := func(name string, queue []lockinfo.Place, holders ...lockinfo.Holding) lockinfo.LockState {
		l := lockinfo.LockState{Name: name, Holders: holders, Queue: queue, QueueLength: len(queue)}
		for i, h := range holders {
			if l.LastToken = h.Token; i == 0 {
				l.Mode = h.Mode
			} else {
				l.Mode = l.Mode.Plus(h.Mode)
			}
		}
		return l
	}
	place := func(since time.Duration, h lockinfo.Holder) lockinfo.Place {
		return lockinfo.Place{LeaseID: lockinfo.NewLeaseID(), Holder: h, Since: since, ExpiresIn: time.Minute}
	}
	const token = 1795256697547813
	deployer := who("deploy", "web-3.eu-central.example.com", 93812, "deploy.sh", "release 1.4 of the shop, with its migrations")
	ada := lockinfo.Holder{User: "ada", Host: "ops-1", Person: true, Reason: "looking at the database"}
	var queue []lockinfo.Place
	for i := range 12 {
		queue = append(queue, place(time.Hour-time.Duration(i)*time.Minute, who("ci", fmt.Sprintf("ci-%d", i), 400+i, "deploy.sh", "")))
	}
	engine, err := memlock.New(&memlock.Options{History: true})
	if err != nil {
		t.Fatal(err)
	}
	return still{
		Forward: driver.Forward{Engine: engine},
		locks: []lockinfo.LockState{
			lock("database", []lockinfo.Place{place(40*time.Minute, deployer)}, held(token+1, 0, 3*time.Hour, 45*time.Hour, ada)),
			lock("deploy/production", queue, held(token, 0, 72*time.Minute, 27*time.Minute, deployer)),
			lock("encoders", nil, held(token+2, lockinfo.Permits(2, 5), 12*time.Minute, 20*time.Minute, who("video", "web-5", 78, "encode", "film 12")),
				held(token+3, lockinfo.Permits(1, 5), 19*time.Minute, 20*time.Minute, who("video", "web-6", 79, "encode", ""))),
			lock("imports/customers/of/a/name/that/is/longer/than/any/window/should/have/to/show", nil,
				held(token+4, lockinfo.Shared, 11*time.Hour, 25*time.Minute, who("etl", "batch-1", 4011, "python3", ""))),
		},
		events: []lockinfo.HistoryEvent{
			{ID: "1", Kind: lockinfo.HistoryAcquired, Name: "deploy/production", Ago: 72 * time.Minute, Token: token, Holder: deployer},
			{ID: "2", Kind: lockinfo.HistoryQueued, Name: "deploy/production", Ago: 60 * time.Minute, Holder: queue[0].Holder},
			{ID: "3", Kind: lockinfo.HistoryQueued, Name: "deploy/production", Ago: 59 * time.Minute, Holder: queue[1].Holder},
			{ID: "4", Kind: lockinfo.HistoryGaveUp, Name: "deploy/production", Ago: 58 * time.Minute, Holder: queue[1].Holder, Waited: time.Minute},
		},
	}
}

// aScreen is a terminal, and the script that runs in it.
type aScreen struct {
	columns int
	script  string
	env     []string
	until   string // a text that shows that all is drawn
}

// prose reports whether the script prints lines that may be wider than the window.
func (s aScreen) prose() bool {
	return strings.Contains(s.script, "history") || strings.Contains(s.script, "--help")
}

func screens() (all []aScreen) {
	for _, columns := range []int{60, 80, 120, 200} {
		for _, script := range []string{"holdfast ls", "holdfast ls --blocked"} {
			all = append(all, aScreen{columns, script + "; echo over", nil, "over"})
		}
		all = append(all, aScreen{columns, "holdfast watch --interval 1h", nil, "imports"}, aScreen{columns, "holdfast wait deploy/production", nil, "held"})
	}
	return append(all,
		aScreen{80, "holdfast show deploy/production; echo over", nil, "over"},
		aScreen{120, "holdfast history deploy/production; echo over", nil, "over"},
		aScreen{80, "holdfast ls zzz; holdfast show nosuch; echo over", nil, "over"},
		aScreen{80, "holdfast watch --interval 1h", []string{"NO_COLOR=1"}, "imports"},
		aScreen{80, "holdfast watch --interval 1h", []string{"TERM=dumb"}, "imports"},
		aScreen{80, "holdfast ls; holdfast wait -w 0 deploy/production; echo over", []string{"TERM=dumb"}, "over"},
		aScreen{120, "holdfast ls; holdfast ls --blocked; holdfast wait -w 2 deploy/production; holdfast --help; echo over", []string{"LC_ALL=C"}, "over"},
	)
}

// TestRecordedTerminals compares the output of commands on terminals of different widths and
// abilities with testdata/terminals.txt. No line is wider than its window, a terminal that cannot
// rewrite a line gets no control codes, and every terminal gets ASCII only.
func TestRecordedTerminals(t *testing.T) {
	t.Parallel()
	handler, err := server.New(aNight(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(handler)
	t.Cleanup(h.Close)
	var drawn strings.Builder
	all, terms := screens(), []*terminal(nil)
	for _, s := range all { // all at once, because each takes a while
		terms = append(terms, startWindow(t, s.columns, h.URL, s.script, append([]string{"TZ=UTC"}, s.env...)...))
	}
	for i, s := range all {
		term := terms[i]
		term.shows(s.until)
		eventually(t, "it is drawn", func() bool { return strings.HasSuffix(s.settled(term.text()), "\n") })
		text := s.settled(term.text())
		for _, line := range strings.Split(uncoloured(text), "\n") {
			if isMessage := strings.HasPrefix(line, "holdfast:") || strings.Contains(line, " is held by "); len(line) > s.columns && !isMessage && !s.prose() {
				t.Errorf("%d columns, %s: a line has %d: %s", s.columns, s.script, len(line), line)
			}
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r > '~' }) {
			t.Errorf("%d columns, %s %v: it is not ASCII", s.columns, s.script, s.env)
		}
		if len(s.env) > 0 && text != uncoloured(text) {
			t.Errorf("%d columns, %s %v: it has colours", s.columns, s.script, s.env)
		}
		if strings.Contains(strings.Join(s.env, ""), "dumb") {
			wantNoCodes(t, term.text())
		}
		if !strings.Contains(s.script, "--help") { // another test compares this text
			text = strings.ReplaceAll(text, h.URL, "http://127.0.0.1:7420")
			fmt.Fprintf(&drawn, "==== %d columns: %s\n%s", s.columns, strings.Join(append(s.env, strings.TrimSuffix(s.script, "; echo over")), " "), text)
		}
		term.press(ctrlC)
	}
	file := filepath.Join("testdata", "terminals.txt")
	if *record {
		if err := os.WriteFile(file, []byte(drawn.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, file); drawn.String() != want {
		t.Errorf("the screens are\n%s\nwant those of %s; go test -run TestRecordedTerminals -record . writes it anew", drawn.String(), file)
	}
}

// settled returns the lines that a screen shows in the end, with colours as {31m} and without the
// times that differ.
func (s aScreen) settled(written string) string {
	written = written[strings.LastIndex(written, "\x1b[H")+1:]
	written = strings.TrimPrefix(written, "[H")
	written = regexp.MustCompile(`\x1b\[(\d*m)`).ReplaceAllString(written, "{$1}")
	written = regexp.MustCompile(`\x1b\[\??\d*[KJhl]`).ReplaceAllString(written, "")
	if i := strings.Index(written, "over\r\n"); i >= 0 {
		written = written[:i]
	}
	written = strings.NewReplacer("\r\r\n", "\n", "\r\n", "\n").Replace(written) // the terminal adds a \r
	written = regexp.MustCompile(`[A-Z][a-z]{2} \d+ [A-Z][a-z]{2} \d\d:\d\d:\d\d`).ReplaceAllString(written, "DAY 27 MON 03:00:00")
	if lines := strings.Split(written, "\r"); len(lines) > 1 { // a line that is drawn again and again
		written = lines[1]
	}
	return strings.TrimRight(written, "\n") + "\n"
}

// uncoloured removes the colours from a text of settled.
func uncoloured(text string) string { return regexp.MustCompile(`\{\d*m\}`).ReplaceAllString(text, "") }
