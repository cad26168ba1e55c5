// Package onefile decides which files are a lock database, so that all processes that use a path
// use the same files. It knows nothing about SQL.
//
// It checks the path and the files before they are opened, notices when they are deleted
// or replaced while they are in use, and makes the store that all users of a host share.
package onefile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// The files of a lock database, by their suffix: SQLite's log, the memory that its
// processes share, the bell, and the alarm.
const (
	LogSuffix    = "-wal"
	MemorySuffix = "-shm"
	BellSuffix   = "-bell"
	AlarmSuffix  = "-alarm"

	// A lock database never has a rollback journal, but SQLite would play back a planted one.
	JournalSuffix = "-journal"
)

// Locate returns the one name of the file at path. Its directory must exist: a directory
// made for a mistyped path would hold a separate store, in which every lock is free.
func Locate(path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("%w path: it is empty", driver.ErrInvalid)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	// Users of a symbolic link must find the same log and shared memory.
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w path: there is no directory %s: make it, or correct the path", driver.ErrInvalid, filepath.Dir(path))
	case err != nil:
		return "", err
	}
	path = filepath.Join(dir, filepath.Base(path))
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 || HasSystemForm(dir) {
		return path, nil // Check reports what is wrong with it
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

// Check fails if the files of the database at path must not be used. For a system store
// see [Maker].
func Check(path string, system bool) error {
	if system {
		return checkSystem(path)
	}
	return checkFiles(path)
}

// checkFiles fails unless this user may use the files and create the missing ones, and no other
// user can replace them. It refuses a file with two names: the other name has its own log and
// memory, and its users would not see the leases.
func checkFiles(path string) error {
	d, err := inspectDirectory(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, suffix := range []string{"", LogSuffix, MemorySuffix, JournalSuffix, BellSuffix} {
		if err := d.checkFile(path + suffix); err != nil {
			return err
		}
	}
	return checkMount(path)
}

// checkMount fails if the file at path is itself a mount point.
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

// wholeInterval is the pause between two checks of AwaitWhole.
const wholeInterval = 5 * time.Millisecond

// AwaitWhole fails if other processes have a different database open at path: the files were
// deleted or replaced, and do not show the leases of those processes. INVARIANT I1. Files look like
// that for a moment when the last process closes the database, so AwaitWhole fails only after
// patience.
func AwaitWhole(ctx context.Context, path string, system bool, patience time.Duration) error {
	limit := time.After(patience)
	for {
		what := notWhole(path, system)
		if what == "" {
			return nil
		}
		select {
		case <-time.After(wholeInterval):
		case <-ctx.Done():
			return fmt.Errorf("%w: the request ended before it was carried out: %w", driver.ErrUnavailable, ctx.Err())
		case <-limit:
			return fmt.Errorf("%w: %s while the database was in use, and those who use it may hold locks: end all programs that use it",
				driver.ErrUnavailable, what)
		}
	}
}

// notWhole describes the file of a database in use that is missing or replaced, or
// returns "".
func notWhole(path string, system bool) string {
	var inode uint64
	database, err := os.Lstat(path)
	if err == nil {
		inode = InodeOf(database)
	}
	log, memory := Exists(path+LogSuffix), Exists(path+MemorySuffix)
	used, other := witnesses(path, inode, system)
	if !CanWitness { // only a deletion leaves traces
		used = database != nil && memory
		other = database == nil && (log || memory)
	}
	switch {
	case other && database == nil:
		return path + " was deleted"
	case other:
		return path + " was replaced or moved"
	case used && !log:
		return path + LogSuffix + " was deleted"
	case used && !memory:
		return path + MemorySuffix + " was deleted"
	}
	return ""
}

// Exists reports whether there is anything at path.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Files are the files of an open database. The zero value is a database that is being
// opened.
type Files struct {
	path    string
	infos   [3]fs.FileInfo // of the database, the log and the shared memory
	witness witness
}

// Hold returns the files at path, which the caller has opened. Until Close, other processes refuse
// different files at this path.
func Hold(path string, system bool) (f Files, err error) {
	f.path = path
	for i, suffix := range [...]string{"", LogSuffix, MemorySuffix} {
		if f.infos[i], err = os.Lstat(path + suffix); err != nil {
			return f, err
		}
	}
	f.witness = testify(path, InodeOf(f.infos[0]), system)
	return f, nil
}

// An OtherFileError reports that other processes open different files by the same path,
// so that both would grant a lock.
type OtherFileError struct {
	what   string
	Linked bool // the files are the same, but the database has a second name
}

func (e OtherFileError) Error() string {
	remedy := "open it again"
	if e.Linked {
		remedy = "delete that name"
	}
	return e.what + ": its leases are lost: " + remedy
}

// Same fails with an OtherFileError if the files at the path have changed since Hold, or
// the database has a second name. INVARIANT I1.
func (f *Files) Same() error {
	path := f.path
	for i, suffix := range [3]string{"", LogSuffix, MemorySuffix} {
		info, err := os.Lstat(path + suffix)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return OtherFileError{what: path + suffix + " was deleted or moved"}
		case err != nil:
			return err
		case !os.SameFile(info, f.infos[i]):
			return OtherFileError{what: path + suffix + " was replaced"}
		case i == 0 && links(info) > 1:
			return OtherFileError{path + " has got another name (hard link)", true}
		}
	}
	return nil
}

// A directory is the directory of a database.
type directory struct {
	open bool // every user may create files in it
}

// inspectDirectory fails unless this user may create files in the directory, and no other
// user can replace them.
func inspectDirectory(path string) (directory, error) {
	info, err := os.Stat(path)
	if err != nil {
		return directory{}, err
	}
	d := directory{openToAll(info)}
	if d.open && info.Mode()&fs.ModeSticky == 0 {
		return d, fmt.Errorf("%w path: every user may write the directory %s, and so replace the file: chmod o-w, or put the file into a directory of its own",
			driver.ErrInvalid, path)
	}
	return d, MayUse(path)
}

func openToAll(dir fs.FileInfo) bool { return dir.Mode().Perm()&0o002 != 0 }

// checkFile fails unless path is missing, or a regular file with one name that this user
// may use.
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
	if err := MayUse(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // deleted since, as the journal is while a process creates the database
}

// checkInfo is checkFile without the check of this user's rights.
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

// OpenOwn opens a file of the database, and does not follow links. It refuses a file that another
// user has planted.
func OpenOwn(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	if err := checkOpen(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// CreateBeside creates a file with the owner, the group and the mode of the database, as far as this
// user can, so that the users of a shared database share the file too. Without a database only this
// user can use it. If another process creates the file first, CreateBeside opens that one.
func CreateBeside(database, path string, flag int) (*os.File, error) {
	f, err := OpenOwn(path, flag|os.O_CREATE|os.O_EXCL)
	switch {
	case errors.Is(err, fs.ErrExist):
		return OpenOwn(path, flag)
	case err != nil:
		return nil, err
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Lstat(database); err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
		_ = f.Chown(-1, GroupOf(info))
		_ = f.Chown(OwnerOf(info), -1) // only root can
	}
	_ = f.Chmod(mode) // the umask does not count
	return f, nil
}

func checkOpen(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	dir, err := os.Stat(filepath.Dir(f.Name()))
	if err != nil {
		return err
	}
	return directory{openToAll(dir)}.checkInfo(f.Name(), info)
}

// checkOwner fails if every user may create files in the directory and the file belongs neither to
// this user nor to root: it may be a trap.
func (d directory) checkOwner(path string, info fs.FileInfo) error {
	if owner := OwnerOf(info); d.open && owner != 0 && owner != os.Geteuid() {
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

// PathError translates an error of the file system to one of package driver.
func PathError(err error) error {
	switch {
	case driver.Definite(err):
		return err
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: give this user the right to write the file and its directory: %w", driver.ErrPermission, err)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENAMETOOLONG),
		errors.Is(err, syscall.ELOOP), errors.Is(err, fs.ErrInvalid), errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("%w path: no file can be there: %w", driver.ErrInvalid, err)
	}
	return fmt.Errorf("%w: the file cannot be opened: %w", driver.ErrUnavailable, err)
}
