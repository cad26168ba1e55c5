package sqlitelock

import (
	"hash/fnv"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// canWitness says that this system has what a witness needs.
const canWitness = true

// A witness tells others, for as long as an engine is open, which file it has
// at its path, even if that is not there any more. It is a shared lock on one
// byte of the directory, and of the directory above, which is still there if
// the directory was moved: the byte's number is made of the path from there
// and the file's inode. The system drops the locks with the process.
type witness []*os.File

const inodeBits = 40

// A spot is where a witness of a path is: the bytes of dir from base on are for
// the path, those from every on for any.
type spot struct {
	dir         string
	base, every int64
}

// spotsOf leaves the directory above out for a system store: everybody may read that,
// and so lock its bytes.
func spotsOf(path string, system bool) []spot {
	dir := filepath.Dir(path)
	spots := []spot{{dir, bytesOf(filepath.Base(path)), bytesOf("")}}
	if above := filepath.Dir(dir); above != dir && !system {
		spots = append(spots, spot{above, bytesOf(filepath.Join(filepath.Base(dir), filepath.Base(path))), bytesOf("")})
	}
	return spots
}

// bytesOf returns the first of the bytes that stand for a path.
func bytesOf(path string) int64 {
	h := fnv.New32a()
	_, _ = io.WriteString(h, path)
	return int64(h.Sum32()>>10) << inodeBits
}

// byteOf returns the byte that stands for an inode, counted from the first.
func byteOf(inode uint64) int64 { return int64(inode & (1<<inodeBits - 1)) }

// testify makes the witness of the file that is open at path. Where the file
// system or the user's rights do not allow it, there is none.
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

func (w witness) close() {
	for _, d := range w {
		_ = d.Close()
	}
}

// witnesses reports whether an engine of any process has the file with that
// inode open at path, and whether one has another file there, or that file by
// another path.
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

// locked reports whether any of the bytes from one to another is locked.
func locked(d *os.File, from, to int64) bool {
	if from == to {
		return false // a length of 0 would be all that follow
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: from, Len: to - from}
	return unix.FcntlFlock(d.Fd(), unix.F_OFD_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK
}

// waitByte returns the byte of its directory that those lock who wait for the write
// lock of the database at path.
func waitByte(path string) int64 { return bytesOf(filepath.Base(path) + "/waits") }

// waits tells the other processes that this one waits for the write lock, or that it
// no longer does.
func (w witness) waits(path string, yes bool) {
	if len(w) == 0 {
		return
	}
	lock := unix.Flock_t{Type: unix.F_UNLCK, Start: waitByte(path), Len: 1}
	if yes {
		lock.Type = unix.F_RDLCK
	}
	_ = unix.FcntlFlock(w[0].Fd(), unix.F_OFD_SETLK, &lock)
}

// othersWait reports whether another engine of any process says so.
func (w witness) othersWait(path string) bool {
	at := waitByte(path)
	return len(w) > 0 && locked(w[0], at, at+1)
}
