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

// hotJournal returns a rollback journal, which a lock database never has. SQLite would play it
// back: cut the database to this number of pages, and write the pages in the journal.
func hotJournal(pages uint32) []byte {
	const sector = 512
	j := []byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}
	for _, n := range []uint32{0, 0, pages, sector, pageSize} {
		j = binary.BigEndian.AppendUint32(j, n)
	}
	return append(j, make([]byte, sector-len(j))...)
}

// TestPlantedJournal checks that a user who may create files in the directory cannot change another
// user's database by planting a journal.
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

// TestJournalThatGoes checks that Check does not fail because of the journal that exists for a
// moment while another process creates the database.
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
