package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// The files of a lock database, by what follows its path: SQLite's log and the
// memory that its processes share, the bell, and the alarm.
const (
	logSuffix    = "-wal"
	memorySuffix = "-shm"
	bellSuffix   = "-bell"
	alarmSuffix  = "-alarm"

	// A lock database never has a rollback journal, and SQLite believes one that
	// somebody else has put there.
	journalSuffix = "-journal"
)

// locate returns the one name of the file at path. Its directory must be there: one
// that is made for a mistyped path would have a store of its own, in which every
// lock is free.
func locate(path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("%w path: it is empty", driver.ErrInvalid)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	// The files beside it must have the same names for those who come by a
	// symbolic link.
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w path: there is no directory %s: make it, or correct the path", driver.ErrInvalid, filepath.Dir(path))
	case err != nil:
		return "", err
	}
	path = filepath.Join(dir, filepath.Base(path))
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 || hasSystemForm(dir) {
		return path, nil // what is wrong with it is said later
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("%w path: %s is a symbolic link to nowhere: %w", driver.ErrInvalid, path, err)
	}
	d, err := inspectDirectory(dir)
	if err != nil {
		return "", err
	}
	return target, d.checkOwner(path, info)
}

// checkFiles fails unless this user may use the files of the database at path
// and make those that are missing, and nobody can have put others in their
// place. A file that is used by two names is refused: whoever comes by the other
// name has a log and a memory of their own, and sees no lease.
func checkFiles(path string) error {
	d, err := inspectDirectory(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, suffix := range []string{"", logSuffix, memorySuffix, journalSuffix, bellSuffix} {
		if err := d.checkFile(path + suffix); err != nil {
			return err
		}
	}
	return checkMount(path)
}

// checkMount fails if the file at path is mounted by itself.
func checkMount(path string) error {
	switch mounted, err := isMountPoint(path); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case mounted:
		return fmt.Errorf("%w path: %s is a mount point of its own, and those who have the file by its other path do not see its locks: "+
			"mount its directory instead", driver.ErrInvalid, path)
	}
	return nil
}

// awaitWhole fails if processes that have the database open do not have the
// files that are there: these were deleted or replaced, and do not show the leases
// that others hold. INVARIANT I1. It waits for that long, because it is so for a
// moment while the last of them closes the database.
func awaitWhole(ctx context.Context, path string, system bool, patience time.Duration) error {
	limit := time.After(patience)
	for {
		what := notWhole(path, system)
		if what == "" {
			return nil
		}
		select {
		case <-time.After(busyInterval):
		case <-ctx.Done():
			return interrupted(ctx)
		case <-limit:
			return fmt.Errorf("%w: %s while the database was in use, and those who use it may hold locks: end all programs that use it",
				driver.ErrUnavailable, what)
		}
	}
}

// notWhole says which file of a database in use is not the one in use, or "".
func notWhole(path string, system bool) string {
	var inode uint64
	database, err := os.Lstat(path)
	if err == nil {
		inode = inodeOf(database)
	}
	log, memory := exists(path+logSuffix), exists(path+memorySuffix)
	used, other := witnesses(path, inode, system)
	if !canWitness { // what only a deletion leaves behind
		used = database != nil && memory
		other = database == nil && (log || memory)
	}
	switch {
	case other && database == nil:
		return path + " was deleted"
	case other:
		return path + " was replaced or moved"
	case used && !log:
		return path + logSuffix + " was deleted"
	case used && !memory:
		return path + memorySuffix + " was deleted"
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// A fileSet is what the files of an open database were when it was opened.
type fileSet [3]fs.FileInfo

// fileSetOf looks at the files now.
func fileSetOf(path string) (set fileSet, err error) {
	for i, suffix := range [3]string{"", logSuffix, memorySuffix} {
		if set[i], err = os.Lstat(path + suffix); err != nil {
			return set, err
		}
	}
	return set, nil
}

// An otherFileError says that the files of an open database are not those that
// other processes open by its path: both would grant.
type otherFileError struct{ what string }

func (e otherFileError) Error() string { return e.what + ": its leases are lost: open it again" }

// same fails with an otherFileError unless the files at path are those of the
// set, and the database has no other name. INVARIANT I1.
func (set *fileSet) same(path string) error {
	for i, suffix := range [3]string{"", logSuffix, memorySuffix} {
		info, err := os.Lstat(path + suffix)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return otherFileError{path + suffix + " was deleted or moved"}
		case err != nil:
			return err
		case !os.SameFile(info, set[i]):
			return otherFileError{path + suffix + " was replaced"}
		case i == 0 && links(info) > 1:
			return otherFileError{path + " has got another name (hard link)"}
		}
	}
	return nil
}

// A directory is where the files of a database are.
type directory struct {
	path string
	open bool // to all: every user may make files in it
}

// inspectDirectory fails unless this user may make files in the directory, and
// no other user may put files in the place of theirs.
func inspectDirectory(path string) (directory, error) {
	info, err := os.Stat(path)
	if err != nil {
		return directory{}, err
	}
	d := directory{path, openToAll(info)}
	if d.open && info.Mode()&fs.ModeSticky == 0 {
		return d, fmt.Errorf("%w path: every user may write the directory %s, and so replace the file: chmod o-w, or put the file into a directory of its own",
			driver.ErrInvalid, path)
	}
	return d, mayUse(path)
}

// openToAll reports whether every user may make files in a directory.
func openToAll(dir fs.FileInfo) bool { return dir.Mode().Perm()&0o002 != 0 }

// checkFile fails unless path is missing, or a regular file with no other
// name, which this user may use.
func (d directory) checkFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if err := d.checkInfo(path, info); err != nil {
		return err
	}
	if err := mayUse(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // it has gone since, as the journal of whoever creates the database does
}

// checkInfo is checkFile for what is there, whoever may use it.
func (d directory) checkInfo(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w path: %s is a %s, not a file", driver.ErrInvalid, path, kind(info.Mode()))
	}
	if n := links(info); n > 1 {
		return fmt.Errorf("%w path: %s has %d names (hard links), and those who have the file by another one do not see its locks: delete the others",
			driver.ErrInvalid, path, n)
	}
	return d.checkOwner(path, info)
}

// checkOpen is checkFile for a file that was opened without following links,
// whoever may use it.
func checkOpen(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	dir, err := os.Stat(filepath.Dir(f.Name()))
	if err != nil {
		return err
	}
	return directory{f.Name(), openToAll(dir)}.checkInfo(f.Name(), info)
}

// checkOwner fails if every user may make files in the directory, and this one
// may be a trap: it belongs neither to this user nor to root.
func (d directory) checkOwner(path string, info fs.FileInfo) error {
	if owner := ownerOf(info); d.open && owner != 0 && owner != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to user %d, and every user may make files in its directory: put the file into a directory of its own",
			driver.ErrPermission, path, owner)
	}
	return nil
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	}
	return "special file"
}
