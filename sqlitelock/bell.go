package sqlitelock

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"

	"github.com/holdfast-locks/holdfast/driver"
)

// A bell is a small file that processes write to after they handed a lock
// over, so that whoever has it now wakes up. Each lease ID has a cell in it, which
// it may share: a process looks at the database only if a cell of its own waiters
// has changed.
type bell struct {
	path string
	made bool // by root, who alone makes it: see MakeSystem
}

const (
	cells    = 256
	cellSize = 8
)

// tolls is the content of a bell. It means nothing; a cell only changes.
type tolls [cells * cellSize]byte

// make creates the file if it is missing, for its owner only, and fails if it
// cannot be rung.
func (b bell) make() error {
	f, err := b.open(os.O_RDWR | b.create())
	if err != nil {
		return err
	}
	return f.Close()
}

// create is the flag that makes a bell that is missing.
func (b bell) create() int {
	if b.made {
		return 0
	}
	return os.O_CREATE
}

// open opens the file, and nothing else that somebody has put there.
func (b bell) open(flag int) (*os.File, error) {
	f, err := os.OpenFile(b.path, flag|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	if err := checkOpen(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// ring wakes those who watch the lease IDs in other processes. Its failure is
// not the ringer's concern: a waiter looks again now and then.
//
// The file is opened each time, so that a bell that was deleted is made anew
// instead of ringing unheard.
func (b bell) ring(ids []driver.LeaseID) {
	f, err := b.open(os.O_WRONLY | b.create())
	if err != nil {
		return
	}
	defer f.Close()
	for _, id := range ids {
		_, _ = f.WriteAt(binary.LittleEndian.AppendUint64(nil, rand.Uint64()), cell(id))
	}
}

// read returns the content, as far as there is any.
func (b bell) read() (t tolls) {
	f, err := b.open(os.O_RDONLY)
	if err != nil {
		return t
	}
	defer f.Close()
	_, _ = io.ReadFull(f, t[:])
	return t
}

// rung reports whether id's bell rang between the readings before and t.
func (t *tolls) rung(before *tolls, id driver.LeaseID) bool {
	at := cell(id)
	return string(t[at:at+cellSize]) != string(before[at:at+cellSize])
}

// cell returns the offset of id's cell.
func cell(id driver.LeaseID) int64 {
	h := fnv.New32a()
	_, _ = io.WriteString(h, string(id))
	return int64(h.Sum32()%cells) * cellSize
}
