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

// rival reads commands. "try PATH" opens the database and requests the lock "t"; it prints
// "granted", "held", or why the file could not be opened: "invalid" or "in use". "bind PATH"
// creates PATH2 and mounts the file at PATH on it, for this process only.
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

// tries makes the rival request the lock of the database at path, and returns the result.
func (c *child) tries(path string) string {
	c.t.Helper()
	return c.answer("try " + path)
}

// answer sends a command to the rival, and returns the line that the rival prints.
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

// TestOneFileOneLock checks that no other process gets a held lock, whatever is done to the files
// of a database in use, and that the holder's next renewal reports a loss. INVARIANT I1.
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
		lost bool // the holder's renewal fails

		witness bool // needs onefile.CanWitness
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
		{"the directory replaced by a file", func(t *testing.T, path string) string {
			check(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+"2"))
			check(t, os.WriteFile(filepath.Dir(path), nil, 0o600))
			return path
		}, true, false},
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

// TestWaitEndsWithTheFile checks that a waiter in the queue of a deleted database soon gets the
// same error as other requests.
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

// TestWaitOutlastsALink checks that a second name of the database makes requests fail but does not
// end a wait, because the name may be deleted again.
func TestWaitOutlastsALink(t *testing.T) {
	e := openNew(t)
	req := drivertest.Request("t", time.Hour)
	drivertest.Granted(t, e, req)
	client, ended := waiterOf(t, e)
	check(t, os.Link(e.path, e.path+"2"))
	if _, err := client.TryAcquire(t.Context(), "t", nil); driver.Class(err) != driver.ErrUnavailable {
		t.Errorf("with a second name: error %v, want ErrUnavailable alone", err)
	}
	e.watches.TellAll() // so that the waiter sends a refresh
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

// TestUsableAfterTheLastIsClosed checks that a database with deleted files can be opened again once
// no process uses it.
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

// TestOtherBootID checks that a container with its own boot ID cannot open a file in use: it would
// treat the leases of others as leases of an earlier boot. INVARIANT I1.
func TestOtherBootID(t *testing.T) {
	if !onefile.CanWitness {
		t.Log("NOT TRIED: this system has no witnesses")
		return
	}
	path := filepath.Join(t.TempDir(), "locks.db")
	h := newHost("of the host")
	e := h.open(t, path)
	h.open(t, path)
	_, err := newSetting(newHost("of a container").clock()).open(t.Context(), path)
	wantIs(t, "open with another boot ID", err, driver.ErrInvalid)
	drivertest.Granted(t, e, drivertest.Request("t", time.Hour))
}

// TestReaderOfOtherFiles checks that a reading connection, which is opened when it is first needed,
// fails if its files are not those of the writing connection.
func TestReaderOfOtherFiles(t *testing.T) {
	e := openNew(t)
	drivertest.Granted(t, e, drivertest.Request("t", time.Hour))
	check(t, open(t, e.path+"2").Close())
	aside := func(from, to string) {
		for _, suffix := range []string{"", onefile.LogSuffix, onefile.MemorySuffix} {
			if err := os.Rename(e.path+from+suffix, e.path+to+suffix); suffix == "" {
				check(t, err) // the other files may be missing
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
