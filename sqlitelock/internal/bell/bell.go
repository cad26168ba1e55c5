// Package bell wakes waiters in other processes. It has the bell, a small file to which a process
// writes after it has handed a lock over; a listener to it; and the watches of one engine. It knows
// nothing about SQL.
package bell

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

// A Bell is a small file with a cell for each lease ID; several may share a cell. A process reads
// the database only if a cell of one of its own waiters has changed.
type Bell struct {
	Path     string
	Database string // "" if only root creates the bell: see onefile.Maker
}

const (
	cells    = 256
	cellSize = 8
)

// Content is the content of a bell. Its values have no meaning; only changes of a cell count.
type Content [cells * cellSize]byte

// Make creates the file if it is missing, and fails if the caller cannot write it.
func (b Bell) Make() error {
	f, err := b.open(os.O_RDWR)
	if err != nil {
		return err
	}
	return f.Close()
}

// open opens the file, and creates a missing one for the users of the database.
func (b Bell) open(flag int) (*os.File, error) {
	f, err := onefile.OpenOwn(b.Path, flag)
	if b.Database != "" && errors.Is(err, fs.ErrNotExist) {
		return onefile.CreateBeside(b.Database, b.Path, flag)
	}
	return f, err
}

// Ring wakes the waiters with these lease IDs in other processes. It returns no error, because
// waiters also check by themselves.
//
// It opens the file each time, so that a deleted bell is created again.
func (b Bell) Ring(ids []lockinfo.LeaseID) {
	if len(ids) == 0 {
		return
	}
	f, err := b.open(os.O_WRONLY)
	if err != nil {
		return
	}
	defer f.Close()
	for _, id := range ids {
		_, _ = f.WriteAt(binary.LittleEndian.AppendUint64(nil, rand.Uint64()), Cell(id))
	}
}

// Read returns the content, or as much as the file has.
func (b Bell) Read() (c Content) {
	f, err := onefile.OpenOwn(b.Path, os.O_RDONLY)
	if err != nil {
		return c
	}
	defer f.Close()
	_, _ = io.ReadFull(f, c[:])
	return c
}

// rung reports whether the bell rang for id between the readings before and c.
func (c *Content) rung(before *Content, id lockinfo.LeaseID) bool {
	at := Cell(id)
	return string(c[at:at+cellSize]) != string(before[at:at+cellSize])
}

// Cell returns the offset of the cell of id.
func Cell(id lockinfo.LeaseID) int64 {
	h := fnv.New32a()
	_, _ = io.WriteString(h, string(id))
	return int64(h.Sum32()%cells) * cellSize
}
