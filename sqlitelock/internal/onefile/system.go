package onefile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/holdfast-locks/holdfast/driver"
)

// A system store is the lock database of a whole host, for root and the members of a group, who
// trust each other with the locks only. Its directory and files belong to root, and only root can
// create, delete or replace one: SQLite opens only files that root has made.

// systemMode is the mode of a system store's directory. Members may create files in it, as
// SQLite requires, but cannot delete root's.
const systemMode = fs.ModeDir | fs.ModeSetgid | fs.ModeSticky | 0o770

// A SystemFile is one of the files of a system store.
type SystemFile struct {
	Suffix string
	Mode   fs.FileMode
}

// SystemFiles returns the files of a system store. The journal is empty; it exists so that no one
// else can create it.
func SystemFiles() []SystemFile {
	return []SystemFile{
		{"", 0o660}, {LogSuffix, 0o660}, {MemorySuffix, 0o660}, {BellSuffix, 0o660}, {AlarmSuffix, 0o660}, {JournalSuffix, 0o640},
	}
}

// A Maker makes one system store. Only root can.
type Maker struct {
	Path  string
	Group int // its ID

	Create func(ctx context.Context, path string) error // makes an empty database
	Verify func(ctx context.Context, path string) error // fails unless the store can be opened

	Step func() // called before each change to a directory, for tests
}

// Run makes the store, or completes one from which files are missing. It reports whether it
// has made the store. If the process is killed there is a whole store or none.
func (m *Maker) Run(ctx context.Context) (made bool, err error) {
	if made, err = m.run(ctx); err != nil {
		return false, PathError(err)
	}
	return made, nil
}

// HasSystemForm reports whether a directory belongs to a system store. Its owner and mode
// identify it by any path.
func HasSystemForm(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && isSystemForm(info)
}

func isSystemForm(dir fs.FileInfo) bool { return dir.Mode() == systemMode && OwnerOf(dir) == 0 }

// NotSystem returns the error for a system store that differs from what Maker makes.
func NotSystem(format string, args ...any) error {
	return fmt.Errorf("%w system store: %s: as root correct it, or end all its users, move it away and make it again",
		driver.ErrInvalid, fmt.Sprintf(format, args...))
}

// checkSystem fails unless the system store at path is exactly what Maker makes, and this
// user may use it.
func checkSystem(path string) error {
	dir := filepath.Dir(path)
	if err := checkWay(dir); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !isSystemForm(info) {
		return NotSystem("the directory %s has the owner %d and the mode %s, want 0 and %s", dir, OwnerOf(info), info.Mode(), systemMode)
	}
	if err := MayUse(dir); errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: the system store %s is for root and the members of the group %s: "+
			"become one (usermod -aG %[3]s USER, and log in again), or name another store", driver.ErrPermission, path, groupName(GroupOf(info)))
	} else if err != nil {
		return err
	}
	for _, f := range SystemFiles() {
		if err := f.Check(path+f.Suffix, GroupOf(info)); err != nil {
			return err
		}
	}
	return checkMount(path)
}

// checkWay fails if a user other than root can replace dir or a directory above it. Each directory,
// from the top, belongs to root, and only root can move its entries. So it is safe to check them
// one after another.
func checkWay(dir string) error {
	if above := filepath.Dir(dir); above != dir {
		if err := checkWay(above); err != nil {
			return err
		}
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return NotSystem("%s is a %s, not a directory", dir, kind(info.Mode()))
	case OwnerOf(info) != 0:
		return NotSystem("the directory %s belongs to user %d, who can replace what is in it", dir, OwnerOf(info))
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
		return NotSystem("others than root may write the directory %s (%s), and so replace what is in it", dir, info.Mode())
	}
	return nil
}

// Check fails unless the file exists exactly as root made it.
func (f SystemFile) Check(path string, group int) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return NotSystem("%s is missing", path)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return NotSystem("%s is a %s, not a file", path, kind(info.Mode()))
	case links(info) > 1:
		return NotSystem("%s has %d names (hard links)", path, links(info))
	case info.Mode() != f.Mode || OwnerOf(info) != 0 || GroupOf(info) != group:
		return NotSystem("%s has the owner %d:%d and the mode %s, want 0:%d and %s", path, OwnerOf(info), GroupOf(info), info.Mode(), group, f.Mode)
	case f.Suffix == "" && info.Size() == 0: // SQLite would delete the log
		return NotSystem("%s is empty", path)
	}
	return nil
}

// groupName returns the name of a group, or its number if it has none.
func groupName(id int) string {
	if g, err := user.LookupGroupId(strconv.Itoa(id)); err == nil {
		return g.Name
	}
	return strconv.Itoa(id)
}
