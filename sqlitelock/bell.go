package sqlitelock

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
)

// A bell is a small file that processes write to after a release, so that
// those who wait wake up. Each name has its slot in it, which some names
// share: the processes that wait for others need not look at the database.
type bell struct{ path string }

const (
	slots    = 256
	slotSize = 8
)

// tolls is the content of a bell. It means nothing; a slot only changes.
type tolls [slots * slotSize]byte

// make creates the file if it is missing, for its owner only, and fails if it
// cannot be rung.
func (b bell) make() error {
	f, err := os.OpenFile(b.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// ring wakes those who wait for name in all processes. Its failure is not the
// releaser's concern: who waits looks again now and then.
//
// The file is opened each time, so that a bell that was deleted is made anew
// instead of ringing unheard.
func (b bell) ring(name string) {
	f, err := os.OpenFile(b.path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteAt(binary.LittleEndian.AppendUint64(nil, rand.Uint64()), slot(name))
}

// read returns the content, as far as there is any.
func (b bell) read() (t tolls) {
	f, err := os.Open(b.path)
	if err != nil {
		return t
	}
	defer f.Close()
	_, _ = io.ReadFull(f, t[:])
	return t
}

// rung reports whether name's bell rang between the readings before and t.
func (t *tolls) rung(before *tolls, name string) bool {
	at := slot(name)
	return string(t[at:at+slotSize]) != string(before[at:at+slotSize])
}

// slot returns the offset of name's slot.
func slot(name string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int64(h.Sum32()%slots) * slotSize
}
