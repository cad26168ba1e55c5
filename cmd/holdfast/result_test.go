//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/wire"
)

// reported is a run with --status-fd, and the file with its events.
type reported struct {
	*process
	file string
}

// reportOf starts a run with --status-fd and args.
func reportOf(t *testing.T, store string, args ...string) reported {
	t.Helper()
	file := filepath.Join(t.TempDir(), "events")
	args = append([]string{"-c", `exec holdfast run --status-fd 3 "$@" 3>` + file, "sh"}, args...)
	return reported{startProgram(t, store, "sh", func(*process) []string { return args }), file}
}

// events returns the reported events.
func (r reported) events() (events []wire.Event) {
	r.t.Helper()
	for _, line := range bytes.Split(bytes.TrimSpace([]byte(read(r.t, r.file))), []byte("\n")) {
		var e wire.Event
		if err := json.Unmarshal(line, &e); err != nil {
			r.t.Fatalf("%q: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

// await waits for an event.
func (r reported) await(event string) {
	r.t.Helper()
	eventually(r.t, "it reports "+event, func() bool {
		data, _ := os.ReadFile(r.file) // there may be no file yet
		return bytes.Contains(data, []byte(`{"event":"`+event+`"`))
	})
}

// want checks that the run ends with status, and that only its last event is a result, with the
// status, an outcome and, if the run had a lock, its token.
func (r reported) want(status int, outcome, name string, had bool) {
	r.t.Helper()
	r.process.want(status)
	events := r.events()
	result := events[len(events)-1]
	for _, e := range events[:len(events)-1] {
		if e.Event == "result" {
			r.t.Errorf("a result comes before the last event: %+v", events)
		}
	}
	if result.Event != "result" || result.Outcome != outcome || result.Status == nil || *result.Status != status || result.Name != name {
		r.t.Errorf("the result is %s, want the outcome %s with status %d for %q", read(r.t, r.file), outcome, status, name)
	}
	if (result.Token != nil) != had || result.WaitedMS == nil || result.HeldMS == nil || !had && *result.HeldMS != 0 {
		r.t.Errorf("the result is %s; it had the lock: %t", read(r.t, r.file), had)
	}
	if hasReason := result.Reason != ""; hasReason != (outcome != "exited") {
		r.t.Errorf("the result is %s", read(r.t, r.file))
	}
}

// TestResult checks that the last event of a run reports how it ended.
func TestResult(t *testing.T) {
	t.Parallel()
	store, dir := sqlite(t), t.TempDir()
	file, junk := filepath.Join(dir, "file"), filepath.Join(dir, "junk")
	touch(t, file)
	write(t, junk, "\x7fELF\x00")
	if err := os.Chmod(junk, 0o755); err != nil {
		t.Fatal(err)
	}
	hold(t, store, "held")
	for what, c := range map[string]struct {
		status  int
		outcome string
		name    string
		had     bool
		args    []string
	}{
		"success":          {0, "exited", "job", true, []string{"job", "--", "true"}},
		"its own status":   {75, "exited", "job", true, []string{"job", "--", "sh", "-c", "exit 75"}},
		"killed":           {137, "exited", "job", true, []string{"job", "--", "sh", "-c", "kill -9 $$"}},
		"several names":    {0, "exited", "one", true, []string{"-N", "one", "-N", "two", "--", "true"}},
		"no name":          {64, "usage", "", false, nil},
		"wrong flag":       {64, "usage", "", false, []string{"--bogus", "job", "--", "true"}},
		"wrong argument":   {64, "usage", "", false, []string{"--ttl", "soon", "job", "--", "true"}},
		"wrong value":      {64, "usage", "job", false, []string{"--on-lost", "cry", "job", "--", "true"}},
		"wrong name":       {64, "usage", "a\nb", false, []string{"a\nb", "--", "true"}},
		"no command":       {64, "usage", "job", false, []string{"job"}},
		"no program":       {127, "not_started", "job", false, []string{"job", "--", "no-such-command"}},
		"no right":         {126, "not_started", "job", false, []string{"job", "--", file}},
		"no format":        {126, "not_started", "job", true, []string{"job", "--", junk}},
		"busy":             {75, "busy", "held", false, []string{"-n", "held", "--", "true"}},
		"busy, waited":     {75, "busy", "held", false, []string{"-w", "0.1", "held", "--", "true"}},
		"busy, own status": {3, "busy", "held", false, []string{"-E", "3", "-n", "held", "--", "true"}},
		"busy as success":  {0, "busy", "held", false, []string{"-E", "0", "-n", "held", "--", "true"}},
		"busy, quiet":      {75, "busy", "held", false, []string{"-q", "-n", "held", "--", "true"}},
		"another kind":     {78, "config", "held", false, []string{"--slots", "3", "held", "--", "true"}},
		"no such store":    {78, "config", "job", false, []string{"--store", "bogus:", "job", "--", "true"}},
		"max-hold":         {124, "max_hold", "job", true, []string{"--max-hold", "300ms", "job", "--", "sleep", "60"}},
		"away":             {69, "unavailable", "job", false, []string{"--store", "redis://127.0.0.1:1", "job", "--", "true"}},
		"away, waited":     {69, "unavailable", "job", false, []string{"--store", "redis://127.0.0.1:1", "-w", "0.2", "job", "--", "true"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			store := store
			if c.had { // a lock of its own
				store = sqlite(t)
			}
			reportOf(t, store, c.args...).want(c.status, c.outcome, c.name, c.had)
		})
	}
}

// TestResultOfWhatHappens is TestResult for ends with an outside cause.
func TestResultOfWhatHappens(t *testing.T) {
	t.Parallel()
	term := 128 + int(syscall.SIGTERM)
	t.Run("ended while it waits", func(t *testing.T) {
		t.Parallel()
		store := sqlite(t)
		hold(t, store, "job")
		r := reportOf(t, store, "job", "--", "true")
		r.await("waiting")
		r.signal(syscall.SIGTERM)
		r.want(term, "signalled", "job", false)
	})
	t.Run("ended while the store is away", func(t *testing.T) {
		t.Parallel()
		r := reportOf(t, "redis://127.0.0.1:1", "-w", "1h", "job", "--", "true")
		r.await("waiting")
		r.signal(syscall.SIGTERM)
		r.want(term, "signalled", "job", false)
		if e := r.events()[0]; e.Outage == "" || e.Holder != nil {
			t.Errorf("it waits for %+v", e)
		}
	})
	t.Run("ended with its command", func(t *testing.T) {
		t.Parallel()
		r := reportOf(t, sqlite(t), "job", "--", "sleep", "60")
		r.await("acquired")
		r.signal(syscall.SIGTERM)
		r.want(term, "exited", "job", true)
	})
	t.Run("broken", func(t *testing.T) {
		t.Parallel()
		store := sqlite(t)
		r := reportOf(t, store, "job", "--", "sleep", "60")
		r.await("acquired")
		wantRun(t, 0, store, "break", "job", "--reason", "a test")
		r.want(79, "lost", "job", true)
	})
	t.Run("the store goes away", func(t *testing.T) {
		t.Parallel()
		server := testsvc.Redis(t)
		r := reportOf(t, server.URL, "--ttl", "1s", "job", "--", "sleep", "60")
		r.await("acquired")
		server.Kill()
		r.want(79, "lost", "job", true)
	})
	t.Run("not permitted", func(t *testing.T) {
		t.Parallel()
		server := testsvc.Redis(t, "--requirepass", "secret")
		reportOf(t, server.URL, "job", "--", "true").want(77, "not_permitted", "job", false)
	})
}

// TestResultTimes checks that a result contains the times for which the run waited and had the
// lock.
func TestResultTimes(t *testing.T) {
	t.Parallel()
	store := sqlite(t)
	h := hold(t, store, "job", "--reason", "release 1.4")
	r := reportOf(t, store, "job", "--", "sleep", "0.4")
	r.await("waiting")
	began := time.Now()
	time.Sleep(300 * time.Millisecond)
	h.finish()
	r.want(0, "exited", "job", true)
	atMost := time.Since(began)
	events := r.events()
	result := events[len(events)-1]
	waited, held := time.Duration(*result.WaitedMS)*time.Millisecond, time.Duration(*result.HeldMS)*time.Millisecond
	if waited < 300*time.Millisecond || held < 400*time.Millisecond || held > atMost {
		t.Errorf("it waited for %s and had the lock for %s of %s", waited, held, atMost)
	}
	first := events[0]
	if first.Event != "waiting" || first.Place != 1 || first.Holder == nil || first.Holder.PID != h.cmd.Process.Pid || first.Holder.Reason != "release 1.4" {
		t.Errorf("it waits for %+v", first)
	}
}
