//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/wire"
)

// remembering returns the URL of a new store that has history.
func remembering(t *testing.T) string {
	t.Helper()
	return "sqlite://" + filepath.ToSlash(filepath.Join(t.TempDir(), "locks.db")) + "?history=1"
}

// TestHistory checks that the history of a lock lists what commands did with it, as text and as
// JSON.
func TestHistory(t *testing.T) {
	t.Parallel()
	store := remembering(t)
	wantRun(t, 0, store, "history", "job")
	wantRun(t, 0, store, "run", "--reason", "nightly", "job", "--", "true")
	hold(t, store, "job")
	wantRun(t, 0, store, "break", "job", "--reason", "it hangs")
	status, text, stderr := run(t, store, "history", "job")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, want := range []string{"acquired", "released", "acquired", "broken"} {
		if status != 0 || len(lines) != 4 || !regexp.MustCompile(` ago +`+want+` `).MatchString(lines[i]) {
			t.Fatalf("status %d\n%s%s\nwant line %d to be that it was %s", status, text, stderr, i, want)
		}
	}
	if !strings.HasSuffix(lines[0], ": nightly") || !strings.Contains(lines[1], "held for ") || !strings.HasSuffix(lines[3], ": it hangs") {
		t.Errorf("the lines lack reasons, or for how long:\n%s", text)
	}
	_, text, _ = run(t, store, "history", "job", "--json")
	var history wire.History
	if err := json.Unmarshal([]byte(text), &history); err != nil || history.Name != "job" || len(history.Events) != 4 {
		t.Fatalf("%v\n%s", err, text)
	}
	if e := history.Events[3]; e.Event != "broken" || e.Reason != "it hangs" || e.Holder == nil || e.Holder.PID == 0 || e.Token == nil || e.HeldMS == nil {
		t.Errorf("the break is %s", text)
	}
	if _, text, _ = run(t, store, "history", "job", "--since", "0.001"); text != "job: nothing happened in the last 1ms\n" {
		t.Errorf("of the last millisecond: %q", text)
	}
	for _, since := range []string{"1d", time.Now().Add(-time.Minute).Format("15:04")} {
		if _, text, _ = run(t, store, "history", "job", "--since", since); strings.Count(text, "\n") != 4 {
			t.Errorf("since %s: %q", since, text)
		}
	}
	_, text, _ = run(t, store, "history", "other")
	if text != "other: nothing happened in the last 24h\n" {
		t.Errorf("of a name that nobody has used: %q", text)
	}
}

// TestHistoryOfReplay checks that the history of a client that waits for work and gets its result
// does not contain "gave up".
func TestHistoryOfReplay(t *testing.T) {
	t.Parallel()
	redis := testsvc.Redis(t).URL + "?history=1"
	for i, store := range []string{remembering(t), redis, serve(t, redis).urls[0]} {
		dir, key := t.TempDir(), fmt.Sprint("job", i) // two of the stores share one Redis server
		working, end := filepath.Join(dir, "working"), filepath.Join(dir, "end")
		worker := start(t, store, "once", key, "--", "sh", "-c", "touch "+working+"; until test -e "+end+"; do sleep 0.01; done; echo made")
		awaitFile(t, working)
		waiter := start(t, store, "once", key, "--replay", "--", "echo", "made twice")
		waiter.awaitStderr("waiting for " + key)
		if err := os.WriteFile(end, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		worker.want(0)
		waiter.want(0)
		_, text, _ := run(t, store, "history", key)
		if !regexp.MustCompile(` ago +completed .*\n.* ago +replayed .*waited for `).MatchString(text) || strings.Contains(text, "gave up") {
			t.Errorf("%s: the history is\n%s", store, text)
		}
	}
}

// TestHistoryIsOff checks that the error for a store without history explains how to turn it on.
func TestHistoryIsOff(t *testing.T) {
	t.Parallel()
	file := sqlite(t)
	for store, says := range map[string]string{
		file:                         `holdfast: history of "job": it is off: write the line history = 1 to /etc/holdfast.conf, or name the store as ` + file + `?history=1, for all programs that use its locks`,
		file + "?allow_network=true": file + `?allow_network=true&history=1, for all`,
		"quorum+redis://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3": `a quorum has no history`,
	} {
		status, stdout, stderr := run(t, store, "history", "job")
		if status != 78 || stdout != "" || !strings.Contains(stderr, says) {
			t.Errorf("%s: status %d, %q\n%s\nwant %s", store, status, stdout, stderr, says)
		}
	}
}

// TestWatchOnFeed checks that watch looks at a store with history as soon as something happens, and
// reports events that ended before it looked.
func TestWatchOnFeed(t *testing.T) {
	t.Parallel()
	store := remembering(t)
	wantRun(t, 0, store, "ls") // makes the file
	lines := start(t, store, "watch", "--json", "--interval", "1h", "job/")
	read := func() (all []string) {
		data, _ := os.ReadFile(lines.stdout)
		for line := range strings.Lines(string(data)) {
			var c wire.Change
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				return nil // half a line
			}
			what := c.Change
			if c.Event != nil {
				what = c.Event.Event
			}
			all = append(all, fmt.Sprint(what, " ", c.Name))
		}
		return all
	}
	eventually(t, "it listens", func() bool { return slices.Contains(read(), "gap ") })
	wantRun(t, 0, store, "run", "other", "--", "true")
	wantRun(t, 0, store, "run", "job/1", "--", "true")
	hold(t, store, "job/2")
	eventually(t, "the lock that is held has appeared", func() bool { return slices.Contains(read(), "appeared job/2") })
	events := slices.DeleteFunc(read(), func(line string) bool {
		return strings.HasPrefix(line, "appeared") || strings.HasPrefix(line, "gone") || strings.HasPrefix(line, "changed")
	})
	if want := []string{"gap ", "acquired job/1", "released job/1", "acquired job/2"}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
}
