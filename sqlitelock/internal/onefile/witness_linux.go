package onefile

import (
	"hash/fnv"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CanWitness reports that this system has the locks that a witness needs.
const CanWitness = true

// A witness shows other processes which file an open engine has at its path, even after the file
// was deleted. It is a shared lock on one byte of the directory, and on one byte of the parent
// directory, which remains if the directory is moved. The byte depends on the path relative to that
// directory and on the file's inode. The system drops the locks with the process.
type witness []*os.File

const inodeBits = 40

// A spot is a range of bytes for witnesses in dir: from base for one path, from every for
// all paths.
type spot struct {
	dir         string
	base, every int64
}

// spotsOf returns the spots for path. It leaves out the parent directory of a system store: every
// user may read that, and so lock its bytes.
func spotsOf(path string, system bool) []spot {
	dir := filepath.Dir(path)
	spots := []spot{{dir, bytesOf(filepath.Base(path)), bytesOf("")}}
	if above := filepath.Dir(dir); above != dir && !system {
		spots = append(spots, spot{above, bytesOf(filepath.Join(filepath.Base(dir), filepath.Base(path))), bytesOf("")})
	}
	return spots
}

// bytesOf returns the first byte for a path.
func bytesOf(path string) int64 {
	h := fnv.New32a()
	_, _ = io.WriteString(h, path)
	return int64(h.Sum32()>>10) << inodeBits
}

// byteOf returns the byte for an inode, counted from the first.
func byteOf(inode uint64) int64 { return int64(inode & (1<<inodeBits - 1)) }

// testify makes the witness of the open file at path, if the file system and the user's
// rights allow it.
func testify(path string, inode uint64, system bool) (w witness) {
	for _, s := range spotsOf(path, system) {
		d, err := os.Open(s.dir)
		if err != nil {
			continue
		}
		for _, first := range []int64{s.base, s.every} {
			lock := unix.Flock_t{Type: unix.F_RDLCK, Start: first + byteOf(inode), Len: 1}
			_ = unix.FcntlFlock(d.Fd(), unix.F_OFD_SETLK, &lock)
		}
		w = append(w, d)
	}
	return w
}

// Close tells the other processes that the files are no longer in use. It must be called
// after the database is closed.
func (f *Files) Close() {
	for _, d := range f.witness {
		_ = d.Close()
	}
}

// witnesses reports whether an engine of any process has the file with this inode open at
// path, and whether one has a different file there, or this file at another path.
func witnesses(path string, inode uint64, system bool) (same, other bool) {
	var moved bool
	for _, s := range spotsOf(path, system) {
		d, err := os.Open(s.dir)
		if err != nil {
			continue
		}
		at := s.base + byteOf(inode)
		same = same || locked(d, at, at+1)
		other = other || locked(d, s.base, at) || locked(d, at+1, s.base+1<<inodeBits)
		at = s.every + byteOf(inode)
		moved = moved || locked(d, at, at+1)
		_ = d.Close()
	}
	return same, other || moved && !same
}

// locked reports whether any byte in a range is locked.
func locked(d *os.File, from, to int64) bool {
	if from == to {
		return false // a length of 0 means up to the end
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: from, Len: to - from}
	return unix.FcntlFlock(d.Fd(), unix.F_OFD_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK
}

// SameBoot shows other processes the boot ID of this one. It reports false if another engine has the
// file open under a different boot ID. A container can have its own boot ID, and would treat leases
// from outside it as leases of an earlier boot. INVARIANT I1.
func (f *Files) SameBoot(id string) bool {
	if len(f.witness) == 0 {
		return true
	}
	base := bytesOf(filepath.Base(f.path) + "/boot")
	h := fnv.New64a()
	_, _ = io.WriteString(h, id)
	at := base + byteOf(h.Sum64())
	lock := unix.Flock_t{Type: unix.F_RDLCK, Start: at, Len: 1}
	_ = unix.FcntlFlock(f.witness[0].Fd(), unix.F_OFD_SETLK, &lock)
	return !locked(f.witness[0], base, at) && !locked(f.witness[0], at+1, base+1<<inodeBits)
}

// waitByte returns the byte of the directory that engines lock while they wait for the
// write lock of the database at path.
func waitByte(path string) int64 { return bytesOf(filepath.Base(path) + "/waits") }

// Wait tells other processes whether this one waits for the write lock.
func (f *Files) Wait(yes bool) {
	if len(f.witness) == 0 {
		return
	}
	lock := unix.Flock_t{Type: unix.F_UNLCK, Start: waitByte(f.path), Len: 1}
	if yes {
		lock.Type = unix.F_RDLCK
	}
	_ = unix.FcntlFlock(f.witness[0].Fd(), unix.F_OFD_SETLK, &lock)
}

// OthersWait reports whether another engine, of any process, waits for the write lock.
func (f *Files) OthersWait() bool {
	at := waitByte(f.path)
	return len(f.witness) > 0 && locked(f.witness[0], at, at+1)
}
