package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-locks/holdfast/driver"
)

// readers is how many requests may read at the same time, without disturbing
// the one that writes.
const readers = 4

// paramNetwork and paramHistory are Options.AllowNetwork and Options.History in a URL.
const (
	paramNetwork = "allow_network"
	paramHistory = "history"
)

// Options are what is seldom needed.
type Options struct {
	// AllowNetwork opens a database on a file system that other hosts may
	// share: NFS, SMB, 9p and their like, and FUSE file systems of that kind.
	// Only the processes of one host may use it: those of another would neither
	// see its leases nor know its clock.
	AllowNetwork bool

	// System opens only a store that root has made with MakeSystem, for all who
	// share it. Such a store is known by its directory, so that it is treated
	// alike without this option; with it, what is anything else is refused.
	System bool

	// History writes down what happens to each name, and tells of it: see
	// driver.Historian. What engines without it do is not written. Each event is
	// another row to write, so that taking a lock and giving it back costs more.
	History bool
}

// OpenURL is OpenWith for a path in the form
//
//	sqlite:///absolute/path/file.db
//
// in which special characters are written as %XX. The only parameters are
// allow_network=true, which is Options.AllowNetwork, and history=1, which is
// Options.History. A URL of another form is driver.ErrInvalid.
func OpenURL(ctx context.Context, rawURL string) (*Engine, error) {
	return OpenURLWith(ctx, rawURL, nil)
}

// OpenURLWith is OpenURL with options, to which the URL may add.
func OpenURLWith(ctx context.Context, rawURL string, more *Options) (*Engine, error) {
	u, err := url.Parse(rawURL)
	if err != nil { // it quotes the URL, in which somebody may have left a password
		return nil, fmt.Errorf("%w sqlite URL: it is malformed; write special characters of the path as %%XX, for example %% as %%25", driver.ErrInvalid)
	}
	if u.Scheme != "sqlite" || u.Opaque != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") || u.ForceQuery || u.Fragment != "" {
		return nil, fmt.Errorf("%w sqlite URL: want sqlite:///absolute/path/file.db, with three slashes; write ? and # of a path as %%3F and %%23", driver.ErrInvalid)
	}
	opts, err := parseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%w sqlite URL: %w", driver.ErrInvalid, err)
	}
	if more != nil {
		opts.AllowNetwork, opts.System = opts.AllowNetwork || more.AllowNetwork, more.System
		opts.History = opts.History || more.History
	}
	return OpenWith(ctx, u.Path, &opts)
}

func parseQuery(query string) (opts Options, err error) {
	params, err := url.ParseQuery(query)
	if err != nil {
		return opts, err
	}
	known := map[string]*bool{paramNetwork: &opts.AllowNetwork, paramHistory: &opts.History}
	for name, values := range params {
		if known[name] == nil || len(values) > 1 {
			return opts, fmt.Errorf("parameter %q: the only ones are %s and %s, once each; write ? of a path as %%3F", name, paramHistory, paramNetwork)
		}
		if *known[name], err = strconv.ParseBool(values[0]); err != nil {
			return opts, fmt.Errorf("parameter %s: want true or false", name)
		}
	}
	return opts, nil
}

// Open opens the lock database at path, which it creates if it is missing, in a
// directory that is there; Created tells. It waits while other processes do the
// same, until ctx ends.
//
// A path that cannot be a lock database is driver.ErrInvalid, and what is
// there stays unchanged: a directory, a path without one, a file of another program,
// a database of another version of holdfast. So is one whose locks others might not see,
// because the file has several names or is a mount point of its own, or because
// other hosts may share its file system; and one whose files any user may replace.
// One that this user may not use is driver.ErrPermission.
// A host without a boot-time clock is driver.ErrUnsupported.
func Open(ctx context.Context, path string) (*Engine, error) {
	return OpenWith(ctx, path, nil)
}

// OpenWith is Open with options. Nil stands for none.
func OpenWith(ctx context.Context, path string, opts *Options) (*Engine, error) {
	clock, err := systemClock()
	if err != nil {
		return nil, err
	}
	s := newSetting(clock)
	if opts != nil {
		s.Options = *opts
	}
	return s.open(ctx, path)
}

// A setting is what a database is opened with.
type setting struct {
	Options
	clock      clock
	fileSystem func(path string) (kind string, err error)
	patience   time.Duration // with files that are not whole

	// added is how many rows the engine begins with, of those after which it
	// sweeps. It is left to chance: a sweep takes longer than the one acquire of a
	// short-lived engine, and all of them together sweep as often as one that
	// stays.
	added int
}

func newSetting(c clock) setting {
	return setting{clock: c, fileSystem: fileSystem, patience: busyLimit, added: rand.IntN(sweepEvery)}
}

func (s setting) open(ctx context.Context, path string) (*Engine, error) {
	if ctx.Err() != nil {
		return nil, interrupted(ctx)
	}
	path, err := locate(path)
	if err == nil {
		s.System = s.System || hasSystemForm(filepath.Dir(path))
		err = s.check(ctx, path)
	}
	if err != nil {
		return nil, pathError(err)
	}
	e := &Engine{
		path: path, system: s.System, history: s.History, clock: s.clock, added: s.added,
		bell: bell{path + bellSuffix, s.System}, alarm: bell{path + alarmSuffix, s.System},
		readers: make(chan *conn, readers), turn: make(chan struct{}, 1), closing: make(chan struct{}),
		newWatcher: fsnotify.NewWatcher, brief: brief,
	}
	for range readers {
		e.readers <- nil
	}
	if err := e.connect(ctx); err != nil {
		e.closeConnections()
		return nil, refused(err)
	}
	return e, nil
}

// check fails if what is at path must not be opened.
func (s setting) check(ctx context.Context, path string) error {
	kind, err := s.fileSystem(filepath.Dir(path))
	if err == nil && !s.AllowNetwork && slices.Contains(remote, kind) { // if it cannot be told, Diagnose warns
		return fmt.Errorf("%w path: %s is on %s, which other hosts may share, and these would not see its locks: "+
			"use a local disk, or a server; if no other host uses the file, say %s", driver.ErrInvalid, path, kind, paramNetwork)
	}
	if err := checkPlace(path, s.System); err != nil {
		return err
	}
	return awaitWhole(ctx, path, s.System, s.patience)
}

// checkPlace fails if the files at path must not be used.
func checkPlace(path string, system bool) error {
	if system {
		return checkSystem(path)
	}
	return checkFiles(path)
}

// pathError translates an error of the file system.
func pathError(err error) error {
	switch {
	case errors.Is(err, driver.ErrInvalid), errors.Is(err, driver.ErrPermission), errors.Is(err, driver.ErrUnavailable):
		return err
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: give this user the right to write the file and its directory: %w", driver.ErrPermission, err)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENAMETOOLONG),
		errors.Is(err, syscall.ELOOP), errors.Is(err, fs.ErrInvalid), errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("%w path: no file can be there: %w", driver.ErrInvalid, err)
	}
	return fmt.Errorf("%w: the file cannot be opened: %w", driver.ErrUnavailable, err)
}

// connect opens the connection that writes, and what all others need.
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
	if e.conn, err = e.newConn(dsn); err != nil {
		return err
	}
	if err := e.prepareDatabase(ctx); err != nil {
		return err
	}
	if err := e.bell.make(); err != nil {
		return pathError(err)
	}
	_ = e.alarm.make() // without it losses are found by renewals
	// Once more, for what has come since the first look.
	if err := checkPlace(e.path, e.system); err != nil {
		return pathError(err)
	}
	if e.files, err = fileSetOf(e.path); err != nil {
		return pathError(err)
	}
	e.witness = testify(e.path, inodeOf(e.files[0]), e.system)
	return e.files.same(e.path)
}

// openReader opens a connection that only reads, to the files of the engine.
func (e *Engine) openReader() (*conn, error) {
	c, err := e.newConn(e.dsn("_pragma", "query_only(1)"))
	if err != nil {
		return nil, err
	}
	if err = c.execute(`SELECT 1 FROM sqlite_schema`); err == nil { // opens the files
		err = e.files.same(e.path) // INVARIANT I1: they may be others since Open
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// dsn returns the SQLite URI of the database with one parameter. In it a plus
// sign does not stand for a space.
func (e *Engine) dsn(key, value string) string {
	path := (&url.URL{Path: e.path}).EscapedPath()
	return "file://" + path + "?" + key + "=" + strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}
