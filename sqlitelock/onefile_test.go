package sqlitelock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

// rival is a process that reads commands: "try PATH" opens the database there,
// asks for the lock "t", and says "granted", "held", or why it could not open
// the file: "invalid" or "in use"; "bind PATH" mounts the file there over PATH2, which it
// makes, for itself alone.
func rival() error {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		command, path, _ := strings.Cut(in.Text(), " ")
		if command == "bind" {
			fmt.Println(bind(path, path+"2"))
			continue
		}
		fmt.Println(try(path))
	}
	return nil
}

func try(path string) string {
	clock, err := systemClock()
	if err != nil {
		return err.Error()
	}
	s := newSetting(clock)
	s.patience = 20 * time.Millisecond
	e, err := s.open(context.Background(), path)
	switch {
	case errors.Is(err, driver.ErrInvalid):
		return "invalid"
	case errors.Is(err, driver.ErrUnavailable):
		return "in use"
	case err != nil:
		return err.Error()
	}
	defer e.Close()
	switch reply, err := e.Acquire(context.Background(), drivertest.Request("t", time.Minute)); {
	case err != nil:
		return err.Error()
	case reply.Outcome == driver.Granted:
		return "granted"
	}
	return "held"
}

// tries asks the rival for the lock of the database at path.
func (c *child) tries(path string) string {
	c.t.Helper()
	return c.answer("try " + path)
}

// answer gives the rival a command and returns what it says.
func (c *child) answer(command string) string {
	c.t.Helper()
	c.say(command)
	select {
	case line := <-c.lines:
		return line
	case <-time.After(drivertest.Patience):
		c.t.Fatalf("the rival does not answer %q", command)
		return ""
	}
}

// TestOneFileOneLock: whatever somebody does to the files of a database that is
// in use, no other process gets a lock that is held, and the holder is told of
// it by its next renewal. INVARIANT I1.
func TestOneFileOneLock(t *testing.T) {
	other := spawn(t, "rival", "")
	remove := func(suffixes ...string) func(t *testing.T, path string) string {
		return func(t *testing.T, path string) string {
			for _, suffix := range suffixes {
				check(t, os.Remove(path+suffix))
			}
			return path
		}
	}
	link := func(t *testing.T, path string) string {
		check(t, os.Link(path, path+"2"))
		return path + "2"
	}
	for _, c := range []struct {
		what string
		do   func(t *testing.T, path string) (rivals string)
		lost bool // and the holder is told

		witness bool // it takes one to know
	}{
		{"nothing", func(t *testing.T, path string) string { return path }, false, false},
		{"a symbolic link", func(t *testing.T, path string) string {
			check(t, os.Symlink(path, path+"2"))
			return path + "2"
		}, false, false},
		{"a hard link", link, true, false},
		{"a hard link, by the first name", func(t *testing.T, path string) string { link(t, path); return path }, true, false},
		{"another name", func(t *testing.T, path string) string {
			check(t, os.Rename(path, path+"2"))
			return path + "2"
		}, true, true},
		{"-shm deleted", remove(onefile.MemorySuffix), true, false},
		{"-wal deleted", remove(onefile.LogSuffix), true, false},
		{"-shm and -wal deleted", remove(onefile.MemorySuffix, onefile.LogSuffix), true, true},
		{"the database deleted", remove(""), true, false},
		{"all deleted", remove("", onefile.MemorySuffix, onefile.LogSuffix, onefile.BellSuffix), true, true},
		{"all deleted, with their directory", func(t *testing.T, path string) string {
			check(t, os.RemoveAll(filepath.Dir(path)))
			check(t, os.Mkdir(filepath.Dir(path), 0o700))
			return path
		}, true, true},
		{"replaced", func(t *testing.T, path string) string {
			check(t, open(t, path+"2").Close())
			check(t, os.Rename(path+"2", path))
			return path
		}, true, true},
		{"replaced, and the log deleted", func(t *testing.T, path string) string {
			check(t, open(t, path+"2").Close())
			check(t, os.Rename(path+"2", path))
			return remove(onefile.MemorySuffix, onefile.LogSuffix)(t, path)
		}, true, true},
		{"the directory moved", func(t *testing.T, path string) string {
			check(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+"2"))
			check(t, os.Mkdir(filepath.Dir(path), 0o700))
			return path
		}, true, true},
		{"the directory moved, by its new name", func(t *testing.T, path string) string {
			check(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+"2"))
			return filepath.Join(filepath.Dir(path)+"2", filepath.Base(path))
		}, true, false},
	} {
		if c.witness && !onefile.CanWitness {
			continue
		}
		t.Run(c.what, func(t *testing.T) {
			seen := map[string]int{}
			for range rounds {
				dir := filepath.Join(t.TempDir(), "locks")
				check(t, os.Mkdir(dir, 0o700))
				e := open(t, filepath.Join(dir, "locks.db"))
				req := drivertest.Request("t", time.Hour)
				drivertest.Granted(t, e, req)
				extend(t, e, req)
				path := c.do(t, e.path)
				seen[other.tries(path)]++
				err := e.Extend(t.Context(), []driver.ExtendRequest{{Name: "t", LeaseID: req.LeaseID, TTL: time.Hour}})[0]
				var want error
				if c.lost {
					want = driver.ErrLost
				}
				wantIs(t, "the holder's renewal", err, want)
				seen[other.tries(path)]++
				check(t, e.Close())
			}
			t.Logf("the rival: %v", seen)
			if seen["granted"] > 0 || seen["held"]+seen["invalid"]+seen["in use"] != 2*rounds {
				t.Errorf("the rival: %v, want no grant in %d", seen, 2*rounds)
			}
		})
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWaitEndsWithTheFile: a waiter in the queue of a database that was deleted gets the
// error that every other request gets, soon, and does not wait for a store that never comes
// back.
func TestWaitEndsWithTheFile(t *testing.T) {
	e := openNew(t)
	drivertest.Granted(t, e, drivertest.Request("t", time.Hour))
	client, ended := waiterOf(t, e)
	for _, suffix := range []string{"", onefile.LogSuffix, onefile.MemorySuffix} {
		check(t, os.Remove(e.path+suffix))
	}
	_, other := client.TryAcquire(t.Context(), "t", nil)
	for what, err := range map[string]error{"the waiter": <-ended, "another request": other} {
		if !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, driver.ErrClosed) || !strings.Contains(err.Error(), e.path+" was deleted") {
			t.Errorf("%s: error %v, want ErrUnavailable and ErrClosed that names the file", what, err)
		}
	}
}

// TestWaitOutlastsALink: a second name of the database is refused, but does not end a wait,
// because it may be deleted again.
func TestWaitOutlastsALink(t *testing.T) {
	e := openNew(t)
	req := drivertest.Request("t", time.Hour)
	drivertest.Granted(t, e, req)
	client, ended := waiterOf(t, e)
	check(t, os.Link(e.path, e.path+"2"))
	if _, err := client.TryAcquire(t.Context(), "t", nil); driver.Class(err) != driver.ErrUnavailable {
		t.Errorf("with a second name: error %v, want ErrUnavailable alone", err)
	}
	e.watches.TellAll() // so that the waiter looks
	select {
	case err := <-ended:
		t.Fatalf("the wait has ended: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	check(t, os.Remove(e.path+"2"))
	drivertest.Release(t, e, req)
	check(t, <-ended)
}

// waiterOf returns a client of e, and the result of its acquire of the lock "t", which another
// client holds.
func waiterOf(t *testing.T, e *Engine) (client *holdfast.Client, ended chan error) {
	t.Helper()
	client, err := holdfast.New(e, &holdfast.Options{SharedEngine: true})
	check(t, err)
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), drivertest.Patience)
	t.Cleanup(cancel)
	ended = make(chan error, 1)
	go func() {
		_, err := client.Acquire(ctx, "t", &holdfast.AcquireOptions{TTL: time.Second})
		ended <- err
	}()
	drivertest.Eventually(t, "the waiter has a place", func() bool {
		state, err := e.Inspect(t.Context(), "t")
		return err == nil && state.QueueLength == 1
	})
	return client, ended
}

// TestUsableAfterTheLastIsClosed: what is refused while others may hold locks
// is not when they are gone.
func TestUsableAfterTheLastIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	for _, suffixes := range [][]string{{""}, {onefile.LogSuffix}, {onefile.MemorySuffix}, {"", onefile.LogSuffix, onefile.MemorySuffix}} {
		e := open(t, path)
		for _, suffix := range suffixes {
			check(t, os.Remove(path+suffix))
		}
		check(t, e.Close())
		e = open(t, path)
		drivertest.Cycle(t, e, "t")
		check(t, e.Close())
	}
}

// TestReaderOfOtherFiles: a connection that reads is opened when it is first
// needed, and not if its files would be others than those of the one that
// writes.
func TestReaderOfOtherFiles(t *testing.T) {
	e := openNew(t)
	drivertest.Granted(t, e, drivertest.Request("t", time.Hour))
	check(t, open(t, e.path+"2").Close())
	aside := func(from, to string) {
		for _, suffix := range []string{"", onefile.LogSuffix, onefile.MemorySuffix} {
			if err := os.Rename(e.path+from+suffix, e.path+to+suffix); suffix == "" {
				check(t, err) // the others need not be there
			}
		}
	}
	aside("", "1")
	aside("2", "")
	var other onefile.OtherFileError
	if err := e.read(func(reader) error { return nil }); !errors.As(err, &other) {
		t.Errorf("a reader of another file: error %v, want one of the kind onefile.OtherFileError", err)
	}
	aside("", "2")
	aside("1", "")
	drivertest.Held(t, e, drivertest.Request("t", time.Hour))
}
