//go:build unix

package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/driver"
)

// MakeSystem makes a system store at path, in a directory of its own that is not there
// yet, or is empty: for root and the members of the group with that number. Only root
// can. Directory and files belong to root and the group, so that members neither delete
// nor replace one, and Open refuses the store if anything differs. What members can
// still do to each other and to root is in SECURITY.md.
//
// It is there afterwards as a whole, or not at all, whenever the process is killed. If
// it is there already nothing is changed, except that files beside the database that
// were deleted, and which nobody uses, are made again; what is not as it should be is
// driver.ErrInvalid. It reports whether it has made the store.
func MakeSystem(ctx context.Context, path string, group int) (made bool, err error) {
	m := maker{path: path, group: group, step: func() {}}
	made, err = m.run(ctx)
	if err != nil {
		return false, pathError(err)
	}
	return made, nil
}

// A maker makes one system store.
type maker struct {
	path  string
	group int
	step  func() // is called before each change to a directory; tests die here
}

func (m *maker) run(ctx context.Context) (made bool, err error) {
	switch {
	case os.Geteuid() != 0:
		return false, fmt.Errorf("%w: only root can make the system store %s", driver.ErrPermission, m.path)
	case !filepath.IsAbs(m.path) || filepath.Dir(m.path) == "/":
		return false, fmt.Errorf("%w path: %s: want an absolute one, in a directory of its own", driver.ErrInvalid, m.path)
	case m.group <= 0:
		return false, fmt.Errorf("%w group: %d", driver.ErrInvalid, m.group)
	}
	above, err := filepath.EvalSymlinks(filepath.Dir(filepath.Dir(m.path)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("%w path: there is no directory %s: make it", driver.ErrInvalid, filepath.Dir(filepath.Dir(m.path)))
	} else if err != nil {
		return false, err
	}
	dir := filepath.Join(above, filepath.Base(filepath.Dir(m.path)))
	m.path = filepath.Join(dir, filepath.Base(m.path))
	if err := checkWay(above); err != nil {
		return false, err
	}
	fresh, err := isFresh(dir)
	if err == nil && fresh {
		made, err = m.build(ctx, dir)
	}
	if err == nil {
		err = m.complete(ctx)
	}
	return made && err == nil, err
}

// isFresh reports whether there is nothing at dir, or an empty directory of root's.
func isFresh(dir string) (bool, error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case !info.IsDir() || ownerOf(info) != 0:
		return false, nil
	}
	entries, err := os.ReadDir(dir)
	return len(entries) == 0, err
}

// site is a directory beside that of the store, to which only root has access.
func (m *maker) site() string {
	dir := filepath.Dir(m.path)
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".new")
}

// build makes the store beside its place, and then gives it its name. It reports
// whether no other process was faster.
func (m *maker) build(ctx context.Context, dir string) (made bool, err error) {
	site := m.site()
	d, err := m.clear(site)
	if err != nil {
		return false, err
	}
	defer func() { _ = d.Close() }() // and nobody has the lock any more
	path := filepath.Join(site, filepath.Base(m.path))
	m.step()
	if err := createDatabase(ctx, path); err != nil {
		return false, err
	}
	for _, f := range systemFiles() {
		if err := m.put(path+f.suffix, f.mode); err != nil {
			return false, err
		}
	}
	m.step()
	if err := d.Chown(0, m.group); err != nil {
		return false, err
	}
	m.step()
	if err := errors.Join(d.Chmod(systemMode&^fs.ModeDir), d.Sync()); err != nil {
		return false, err
	}
	m.step()
	// Over an empty directory, or none: anything else stays.
	err = unix.Rename(site, dir)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return false, os.RemoveAll(site)
	}
	if err != nil {
		return false, &fs.PathError{Op: "rename", Path: dir, Err: err}
	}
	m.step()
	return true, syncDirectory(filepath.Dir(dir))
}

// createDatabase makes an empty lock database at path, where nobody else is.
func createDatabase(ctx context.Context, path string) (err error) {
	e := &Engine{path: path, brief: brief, closing: make(chan struct{})}
	if e.conn, err = newConn(e.dsn("mode", "rwc")); err != nil {
		return refused(err)
	}
	return refused(errors.Join(e.prepareDatabase(ctx), e.conn.Close()))
}

// clear makes the directory in which the store is built, or empties it of what a
// process has left there that was killed, and keeps others out of it.
func (m *maker) clear(site string) (*os.File, error) {
	m.step()
	if err := os.Mkdir(site, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	d, err := os.OpenFile(site, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err = m.occupy(d, site); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

func (m *maker) occupy(d *os.File, site string) error {
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("%w: another process makes the system store: try again", driver.ErrUnavailable)
	}
	mine, err := d.Stat()
	if err != nil {
		return err
	}
	now, err := os.Lstat(site)
	switch {
	case err != nil || !os.SameFile(mine, now):
		return fmt.Errorf("%w: another process has made the system store: try again", driver.ErrUnavailable)
	case ownerOf(mine) != 0:
		return notSystem("%s belongs to user %d", site, ownerOf(mine))
	}
	entries, err := d.ReadDir(-1)
	for _, entry := range entries {
		m.step()
		err = errors.Join(err, os.RemoveAll(filepath.Join(site, entry.Name())))
	}
	m.step()
	return errors.Join(err, d.Chmod(0o700))
}

// put makes a file, or one that is there, what it should be.
func (m *maker) put(path string, mode fs.FileMode) error {
	m.step()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return err
	}
	m.step()
	err = f.Chown(0, m.group)
	m.step()
	return errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
}

// complete makes files again that are missing in a store that is there, if nobody
// uses it, and fails unless the store is what it should be then.
func (m *maker) complete(ctx context.Context) error {
	info, err := os.Lstat(filepath.Dir(m.path))
	if err != nil {
		return err
	}
	if isSystemForm(info) && groupOf(info) != m.group {
		return notSystem("%s is for the group %s, not %s", filepath.Dir(m.path), groupName(groupOf(info)), groupName(m.group))
	}
	if isSystemForm(info) && exists(m.path) {
		if err := m.restore(); err != nil {
			return err
		}
	}
	e, err := OpenWith(ctx, m.path, &Options{System: true})
	if err != nil {
		return err
	}
	return e.Close()
}

// restore makes the files beside the database that are missing. Each gets its name
// when it is what it should be.
func (m *maker) restore() error {
	if what := notWhole(m.path, true); what != "" {
		return fmt.Errorf("%w: %s while the database was in use: end all programs that use it", driver.ErrUnavailable, what)
	}
	missing := slices.DeleteFunc(systemFiles(), func(f systemFile) bool { return exists(m.path + f.suffix) })
	site := m.site()
	if len(missing) == 0 && !exists(site) {
		return nil
	}
	d, err := m.clear(site)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	for _, f := range missing {
		path := filepath.Join(site, filepath.Base(m.path)+f.suffix)
		if err := m.put(path, f.mode); err != nil {
			return err
		}
		m.step()
		if err := os.Rename(path, m.path+f.suffix); err != nil {
			return err
		}
	}
	m.step()
	return os.Remove(site)
}

func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
