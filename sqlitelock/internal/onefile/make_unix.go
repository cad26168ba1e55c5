//go:build linux || darwin

package onefile

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

func (m *Maker) run(ctx context.Context) (made bool, err error) {
	switch {
	case os.Geteuid() != 0:
		return false, fmt.Errorf("%w: only root can make the system store %s", driver.ErrPermission, m.Path)
	case !filepath.IsAbs(m.Path) || filepath.Dir(m.Path) == "/":
		return false, fmt.Errorf("%w path: %s: want an absolute one, in a directory of its own", driver.ErrInvalid, m.Path)
	case m.Group <= 0:
		return false, fmt.Errorf("%w group: %d", driver.ErrInvalid, m.Group)
	}
	above, err := filepath.EvalSymlinks(filepath.Dir(filepath.Dir(m.Path)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("%w path: there is no directory %s: make it", driver.ErrInvalid, filepath.Dir(filepath.Dir(m.Path)))
	} else if err != nil {
		return false, err
	}
	dir := filepath.Join(above, filepath.Base(filepath.Dir(m.Path)))
	m.Path = filepath.Join(dir, filepath.Base(m.Path))
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

// isFresh reports whether dir is missing, or an empty directory that belongs to root.
func isFresh(dir string) (bool, error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case !info.IsDir() || OwnerOf(info) != 0:
		return false, nil
	}
	entries, err := os.ReadDir(dir)
	return len(entries) == 0, err
}

// site returns a sibling of the store's directory that only root can access.
func (m *Maker) site() string {
	dir := filepath.Dir(m.Path)
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".new")
}

// build makes the store in the site and then renames it. It reports false if another process has
// made the store.
func (m *Maker) build(ctx context.Context, dir string) (made bool, err error) {
	site := m.site()
	d, err := m.clear(site)
	if err != nil {
		return false, err
	}
	defer func() { _ = d.Close() }() // drops the lock
	path := filepath.Join(site, filepath.Base(m.Path))
	m.Step()
	if err := m.Create(ctx, path); err != nil {
		return false, err
	}
	for _, f := range SystemFiles() {
		if err := m.put(path+f.Suffix, f.Mode); err != nil {
			return false, err
		}
	}
	m.Step()
	if err := d.Chown(0, m.Group); err != nil {
		return false, err
	}
	m.Step()
	if err := errors.Join(d.Chmod(systemMode&^fs.ModeDir), d.Sync()); err != nil {
		return false, err
	}
	m.Step()
	// This replaces an empty directory, but nothing else.
	err = unix.Rename(site, dir)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return false, os.RemoveAll(site)
	}
	if err != nil {
		return false, &fs.PathError{Op: "rename", Path: dir, Err: err}
	}
	m.Step()
	return true, syncDirectory(filepath.Dir(dir))
}

// clear creates the site, or empties one that a killed process left, and locks it.
func (m *Maker) clear(site string) (*os.File, error) {
	m.Step()
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

func (m *Maker) occupy(d *os.File, site string) error {
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
	case OwnerOf(mine) != 0:
		return NotSystem("%s belongs to user %d", site, OwnerOf(mine))
	}
	entries, err := d.ReadDir(-1)
	for _, entry := range entries {
		m.Step()
		err = errors.Join(err, os.RemoveAll(filepath.Join(site, entry.Name())))
	}
	m.Step()
	return errors.Join(err, d.Chmod(0o700))
}

// put creates a file, or corrects the owner and mode of an existing one.
func (m *Maker) put(path string, mode fs.FileMode) error {
	m.Step()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return err
	}
	m.Step()
	err = f.Chown(0, m.Group)
	m.Step()
	return errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
}

// complete makes the missing files of an existing store that no process uses. It fails unless the
// store can then be opened.
func (m *Maker) complete(ctx context.Context) error {
	info, err := os.Lstat(filepath.Dir(m.Path))
	if err != nil {
		return err
	}
	if isSystemForm(info) && GroupOf(info) != m.Group {
		return NotSystem("%s is for the group %s, not %s", filepath.Dir(m.Path), groupName(GroupOf(info)), groupName(m.Group))
	}
	if isSystemForm(info) && Exists(m.Path) {
		if err := m.restore(); err != nil {
			return err
		}
	}
	return m.Verify(ctx, m.Path)
}

// restore makes the missing files. It renames each into place once its owner and mode are right.
func (m *Maker) restore() error {
	if what := notWhole(m.Path, true); what != "" {
		return fmt.Errorf("%w: %s while the database was in use: end all programs that use it", driver.ErrUnavailable, what)
	}
	missing := slices.DeleteFunc(SystemFiles(), func(f SystemFile) bool { return Exists(m.Path + f.Suffix) })
	site := m.site()
	if len(missing) == 0 && !Exists(site) {
		return nil
	}
	d, err := m.clear(site)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	for _, f := range missing {
		path := filepath.Join(site, filepath.Base(m.Path)+f.Suffix)
		if err := m.put(path, f.Mode); err != nil {
			return err
		}
		m.Step()
		if err := os.Rename(path, m.Path+f.Suffix); err != nil {
			return err
		}
	}
	m.Step()
	return os.Remove(site)
}

func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
