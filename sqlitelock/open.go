package sqlitelock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-locks/holdfast/driver"
)

// readers is how many requests may read at the same time.
const readers = 4

// OpenURL is Open for a path in the form
//
//	sqlite:///absolute/path/file.db
//
// in which special characters are written as %XX. A URL of another form is
// driver.ErrInvalid; there are no parameters.
func OpenURL(ctx context.Context, rawURL string) (*Engine, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w sqlite URL: %w", driver.ErrInvalid, err)
	}
	switch {
	case u.Scheme != "sqlite" || u.Opaque != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/"):
		return nil, fmt.Errorf("%w sqlite URL: want sqlite:///absolute/path/file.db, with three slashes", driver.ErrInvalid)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("%w sqlite URL: it has parameters, and there are none; write ? and # of a path as %%3F and %%23", driver.ErrInvalid)
	}
	return Open(ctx, u.Path)
}

// Open opens the lock database at path, which it creates, with the
// directories above it, if it is missing. It waits while other processes do
// the same, until ctx ends.
//
// A path that cannot be a lock database is driver.ErrInvalid, and what is
// there stays unchanged: a directory, a file of another program, a database
// of a newer version. One that this user may not use is driver.ErrPermission.
// A host without a boot-time clock is driver.ErrUnsupported.
func Open(ctx context.Context, path string) (*Engine, error) {
	clock, err := systemClock()
	if err != nil {
		return nil, err
	}
	return openWith(ctx, path, clock)
}

func openWith(ctx context.Context, path string, clock clock) (*Engine, error) {
	if ctx.Err() != nil {
		return nil, interrupted(ctx)
	}
	path, err := locate(path)
	if err != nil {
		return nil, pathError(err)
	}
	e := &Engine{
		path: path, clock: clock, bell: bell{path + "-bell"}, alarm: bell{path + "-alarm"},
		turn: make(chan struct{}, 1), closing: make(chan struct{}),
		newWatcher: fsnotify.NewWatcher,
	}
	if err := e.connect(ctx); err != nil {
		e.closeConnections()
		return nil, refused(err)
	}
	return e, nil
}

// locate returns the one name of the file at path, makes the directory for
// it, and checks that this user may use both.
func locate(path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("%w path: it is empty", driver.ErrInvalid)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	// The bell must have the same name for those who come by a symbolic link.
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, filepath.Base(path))
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := mayUse(filepath.Dir(path)); err != nil {
		return "", err
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return path, nil
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%w path: it is a %s, not a file", driver.ErrInvalid, kind(info.Mode()))
	}
	return path, mayUse(path)
}

func kind(mode fs.FileMode) string {
	if mode.IsDir() {
		return "directory"
	}
	return "special file"
}

// pathError translates an error of the file system.
func pathError(err error) error {
	switch {
	case errors.Is(err, driver.ErrInvalid):
		return err
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: give this user the right to write the file and its directory: %w", driver.ErrPermission, err)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENAMETOOLONG),
		errors.Is(err, syscall.ELOOP), errors.Is(err, fs.ErrInvalid), errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("%w path: no file can be there: %w", driver.ErrInvalid, err)
	}
	return fmt.Errorf("%w: the file cannot be opened: %w", driver.ErrUnavailable, err)
}

// connect opens the connections and prepares what they do.
func (e *Engine) connect(ctx context.Context) error {
	dsn := e.dsn("mode", "rw")
	_, err := os.Stat(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		// A new database gets the permissions of the bell. It is not ours to
		// create: if another engine of this process has it open, closing our
		// descriptor would drop that engine's file locks.
		if err := e.bell.make(); err != nil {
			return pathError(err)
		}
		dsn = e.dsn("modeof", e.bell.path)
	}
	if e.writeDB, err = sql.Open("sqlite", dsn); err != nil {
		return err
	}
	e.writeDB.SetMaxOpenConns(1)
	if e.conn, err = e.writeDB.Conn(context.Background()); err != nil {
		return err
	}
	if err := e.prepareDatabase(ctx); err != nil {
		return err
	}
	if err := e.patient(ctx, func() error { return e.write.prepare(e.conn) }); err != nil {
		return err
	}
	if e.file, err = os.Stat(e.path); err != nil {
		return pathError(err)
	}
	if err := e.bell.make(); err != nil {
		return pathError(err)
	}
	_ = e.alarm.make() // without it losses are found by renewals
	if e.readDB, err = sql.Open("sqlite", e.dsn("_pragma", "query_only(1)")); err != nil {
		return err
	}
	e.readDB.SetMaxOpenConns(readers)
	e.readDB.SetMaxIdleConns(readers)
	return e.patient(ctx, func() error { return e.read.prepare(e.readDB) })
}

// dsn returns the SQLite URI of the database with one parameter. In it a plus
// sign does not stand for a space.
func (e *Engine) dsn(key, value string) string {
	path := (&url.URL{Path: e.path}).EscapedPath()
	return "file://" + path + "?" + key + "=" + strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}
