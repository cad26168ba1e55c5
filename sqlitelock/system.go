package sqlitelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/holdfast-locks/holdfast/driver"
)

// A system store is the lock database of a whole host: of root, and of the members of
// a group, who do not trust each other with more than that. Its directory and all its
// files belong to root, and nobody else makes, deletes or replaces one: what SQLite
// opens by these names is what root has put there.

// systemMode is the mode of a system store's directory. Members may make files in it,
// as SQLite asks for, but not delete those of root.
const systemMode = fs.ModeDir | fs.ModeSetgid | fs.ModeSticky | 0o770

// A systemFile is one of the files of a system store.
type systemFile struct {
	suffix string
	mode   fs.FileMode
}

// systemFiles returns them all. The journal is empty, and only keeps its name.
func systemFiles() []systemFile {
	return []systemFile{
		{"", 0o660}, {logSuffix, 0o660}, {memorySuffix, 0o660}, {bellSuffix, 0o660}, {alarmSuffix, 0o660}, {journalSuffix, 0o640},
	}
}

// hasSystemForm reports whether a directory is one that MakeSystem has made. It is
// known by its form, and so by whichever path somebody comes.
func hasSystemForm(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && isSystemForm(info)
}

func isSystemForm(dir fs.FileInfo) bool { return dir.Mode() == systemMode && ownerOf(dir) == 0 }

// notSystem says what is not as MakeSystem makes it.
func notSystem(format string, args ...any) error {
	return fmt.Errorf("%w system store: %s: whoever can become root puts it right, or ends all who use it, moves it away and makes it again",
		driver.ErrInvalid, fmt.Sprintf(format, args...))
}

// checkSystem fails unless the system store at path is as MakeSystem makes it, and
// this user may use it.
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
		return notSystem("the directory %s has the owner %d and the mode %s, want 0 and %s", dir, ownerOf(info), info.Mode(), systemMode)
	}
	if err := mayUse(dir); errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: the system store %s is for root and the members of the group %s: "+
			"become one (usermod -aG %[3]s USER, and log in again), or name another store", driver.ErrPermission, path, groupName(groupOf(info)))
	} else if err != nil {
		return err
	}
	for _, f := range systemFiles() {
		if err := f.check(path+f.suffix, groupOf(info)); err != nil {
			return err
		}
	}
	return checkMount(path)
}

// checkWay fails if anybody but root can put another directory in the place of dir.
// From the top on each is root's, and what root has in it nobody else can move: so it
// does not matter that they are looked at one after another.
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
		return notSystem("%s is a %s, not a directory", dir, kind(info.Mode()))
	case ownerOf(info) != 0:
		return notSystem("the directory %s belongs to user %d, who can replace what is in it", dir, ownerOf(info))
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
		return notSystem("others than root may write the directory %s (%s), and so replace what is in it", dir, info.Mode())
	}
	return nil
}

// check fails unless the file is there, and is as root has made it.
func (f systemFile) check(path string, group int) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notSystem("%s is missing", path)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return notSystem("%s is a %s, not a file", path, kind(info.Mode()))
	case links(info) > 1:
		return notSystem("%s has %d names (hard links)", path, links(info))
	case info.Mode() != f.mode || ownerOf(info) != 0 || groupOf(info) != group:
		return notSystem("%s has the owner %d:%d and the mode %s, want 0:%d and %s", path, ownerOf(info), groupOf(info), info.Mode(), group, f.mode)
	case f.suffix == "" && info.Size() == 0: // SQLite would delete what is beside it
		return notSystem("%s is empty", path)
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
