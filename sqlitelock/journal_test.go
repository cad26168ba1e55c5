package sqlitelock

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

// hotJournal is a rollback journal, which a lock database never has. SQLite believes
// it: it cuts the database to that many pages, and writes those that the journal has.
func hotJournal(pages uint32) []byte {
	const sector = 512
	j := []byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}
	for _, n := range []uint32{0, 0, pages, sector, pageSize} {
		j = binary.BigEndian.AppendUint32(j, n)
	}
	return append(j, make([]byte, sector-len(j))...)
}

// TestPlantedJournal: where every user may make files, nobody can change a database
// that only others may write by a journal that they put beside it.
func TestPlantedJournal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("NOT TRIED: only root can make files of two users")
		return
	}
	dir := t.TempDir()
	check(t, os.Chmod(dir, 0o777|os.ModeSticky))
	path := filepath.Join(dir, "locks.db")
	check(t, open(t, path).Close())
	before, err := os.ReadFile(path)
	check(t, err)
	check(t, os.WriteFile(path+"-journal", hotJournal(1), 0o644))
	check(t, os.Chown(path+"-journal", 1, 1))
	e, err := Open(t.Context(), path, nil)
	wantIs(t, "open", err, driver.ErrPermission)
	if err == nil {
		_ = e.Close()
	}
	after, err := os.ReadFile(path)
	check(t, err)
	if !bytes.Equal(before, after) {
		t.Errorf("the database has changed, from %d to %d bytes", len(before), len(after))
	}
}

// TestJournalThatGoes: whoever creates the database has a journal for a moment. Another
// who looks at it meanwhile is not told that it is not there.
func TestJournalThatGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { // ends with ctx
		var err error
		for ctx.Err() == nil && err == nil {
			if err = os.WriteFile(path+onefile.JournalSuffix, nil, 0o600); err == nil {
				err = os.Remove(path + onefile.JournalSuffix)
			}
		}
		done <- err
	}()
	for began := time.Now(); time.Since(began) < time.Second; {
		if err := onefile.Check(path, false); err != nil {
			t.Error(err)
			break
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
