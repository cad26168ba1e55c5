//go:build unix

package sqlitelock

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

// makeAndDie makes a system store, and kills its own process with SIGKILL before the step with this
// number.
func makeAndDie(path, group, step string) error {
	gid, err := strconv.Atoi(group)
	if err != nil {
		return err
	}
	left, err := strconv.Atoi(step)
	if err != nil {
		return err
	}
	m := systemMaker(path, gid, func() {
		if left--; left < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	_, err = m.Run(context.Background())
	return err
}

// dies runs makeAndDie in another process, and reports whether it was killed before it had
// finished.
func dies(t *testing.T, path string, step int) bool {
	t.Helper()
	c := spawn(t, "make", path, strconv.Itoa(theGroup), strconv.Itoa(step))
	err := c.cmd.Wait()
	if err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatal(err)
	}
	return err != nil
}

// TestMakeSystemKilled checks that a process that is killed while it makes a store leaves no store
// or a whole one. The next process to make the store leaves a whole one and no other files.
func TestMakeSystemKilled(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	steps, whole := 0, 0
	for killed := true; killed; steps++ {
		path := filepath.Join(publicDir(t), "holdfast", "locks.db")
		killed = dies(t, path, steps)
		if _, err := os.Lstat(filepath.Dir(path)); err == nil {
			whole++
			check(t, open(t, path).Close())
			if err := onefile.Check(path, true); err != nil {
				t.Errorf("killed at step %d: %v", steps, err)
			}
		}
		if _, err := MakeSystem(t.Context(), path, theGroup); err != nil {
			t.Errorf("killed at step %d: made again: %v", steps, err)
		}
		if text := inventory(t, path); strings.Count(text, "\n") != 6 {
			t.Errorf("killed at step %d:\n%s", steps, text)
		}
	}
	t.Logf("%d steps; after %d of them there was a store", steps, whole)
	if steps < 20 || whole < 2 || whole == steps {
		t.Errorf("%d steps, %d with a store: the process does not die where it should", steps, whole)
	}
}

// TestRestoreKilled checks that deleted files are made again, each whole or not at all, if the
// process is killed.
func TestRestoreKilled(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	for step, killed := 0, true; killed; step++ {
		path := makeSystem(t)
		e := open(t, path)
		token := drivertest.Granted(t, e, drivertest.Request("t", time.Hour))
		check(t, e.Close())
		for _, suffix := range []string{onefile.LogSuffix, onefile.MemorySuffix, onefile.JournalSuffix} {
			check(t, os.Remove(path+suffix))
		}
		_, err := Open(t.Context(), path, nil)
		wantIs(t, "open of a store that is not whole", err, driver.ErrInvalid)
		killed = dies(t, path, step)
		for _, f := range onefile.SystemFiles() {
			if onefile.Exists(path + f.Suffix) {
				check(t, f.Check(path+f.Suffix, theGroup))
			}
		}
		made, err := MakeSystem(t.Context(), path, theGroup)
		if made || err != nil {
			t.Errorf("killed at step %d: made %t, %v", step, made, err)
		}
		if text := inventory(t, path); strings.Count(text, "\n") != 6 {
			t.Errorf("killed at step %d:\n%s", step, text)
		}
		if lock, err := open(t, path).Inspect(t.Context(), "t"); err != nil || lock.LastToken != token {
			t.Errorf("killed at step %d: %+v, %v; want token %d", step, lock, err, token)
		}
	}
}

// TestRestoreInUse checks that a file that was deleted during use is not made again, because later
// processes would use other files than the current ones. INVARIANT I1.
func TestRestoreInUse(t *testing.T) {
	if !needsRoot(t) || !onefile.CanWitness {
		return
	}
	path := makeSystem(t)
	e := open(t, path)
	drivertest.Granted(t, e, drivertest.Request("t", time.Hour))
	check(t, os.Remove(path+onefile.LogSuffix))
	_, err := MakeSystem(t.Context(), path, theGroup)
	wantIs(t, "make in use", err, driver.ErrUnavailable)
	if onefile.Exists(path + onefile.LogSuffix) {
		t.Error("there is a log again")
	}
}

// TestSystemStoreSurvivesKills checks that the files stay as root has made them, and the store
// works, if processes of root and of members are killed during their requests.
func TestSystemStoreSurvivesKills(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	path := makeSystem(t)
	before := inventory(t, path)
	for round := range rounds {
		var crew []*child
		for _, user := range []uint32{0, firstMember, otherMember} {
			crew = append(crew, spawnAs(t, user, "cycle", path))
		}
		for _, c := range crew {
			c.expect("cycling")
		}
		time.Sleep(rand.N(20 * time.Millisecond))
		for _, i := range rand.Perm(len(crew)) {
			crew[i].kill()
		}
		if after := inventory(t, path); after != before {
			t.Fatalf("round %d:\n%s\nwas\n%s", round, after, before)
		}
		e := open(t, path)
		drivertest.Cycle(t, e, "after")
		check(t, e.Close())
	}
}
