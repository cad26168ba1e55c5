package sqlitelock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/bell"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

// readers is how many requests may read at the same time. They do not block the one that writes.
const readers = 4

// paramNetwork and paramHistory are Options.AllowNetwork and Options.History in a URL.
const (
	paramNetwork = "allow_network"
	paramHistory = "history"
)

// Options configure Open. A zero field is the default.
type Options struct {
	// AllowNetwork opens a database on a file system that other hosts may
	// share: NFS, SMB, 9p and the like. Only the processes of one host may use the
	// database: processes of another host would not see its leases or share its clock.
	AllowNetwork bool

	// System opens only a store that MakeSystem has made, and refuses all others.
	// Without this option Open recognises such a store by its directory.
	System bool

	// History records and publishes the events of each name: see driver.Historian.
	// Engines without it record nothing. Each event is another row to write, so that
	// acquire and release cost more.
	History bool
}

// OpenURL is Open for a URL of the form
//
//	sqlite:///absolute/path/file.db
//
// in which special characters of the path are written as %XX. The only parameters are
// allow_network=true, which is Options.AllowNetwork, and history=1, which is Options.History. They
// add to the options. A URL of another form is driver.ErrInvalid.
func OpenURL(ctx context.Context, rawURL string, opts *Options) (*Engine, error) {
	u, err := url.Parse(rawURL)
	if err != nil { // err quotes the URL, which may contain a misplaced password
		return nil, fmt.Errorf("%w sqlite URL: it is malformed; write special characters of the path as %%XX, for example %% as %%25", driver.ErrInvalid)
	}
	if u.Scheme != "sqlite" || u.Opaque != "" || u.OmitHost || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") || u.ForceQuery || u.Fragment != "" {
		return nil, fmt.Errorf("%w sqlite URL: want sqlite:///absolute/path/file.db, with three slashes; write ? and # of a path as %%3F and %%23", driver.ErrInvalid)
	}
	all := *cmp.Or(opts, &Options{})
	if err := all.add(u.RawQuery); err != nil {
		return nil, fmt.Errorf("%w sqlite URL: %w", driver.ErrInvalid, err)
	}
	return Open(ctx, u.Path, &all)
}

// add adds the parameters of a URL to the options.
func (opts *Options) add(query string) error {
	params, err := url.ParseQuery(query)
	if err != nil {
		return err
	}
	known := map[string]*bool{paramNetwork: &opts.AllowNetwork, paramHistory: &opts.History}
	for name, values := range params {
		if known[name] == nil || len(values) > 1 {
			return fmt.Errorf("parameter %q: the only ones are %s and %s, once each; write ? of a path as %%3F", name, paramHistory, paramNetwork)
		}
		on, err := strconv.ParseBool(values[0])
		if err != nil {
			return fmt.Errorf("parameter %s: want true or false", name)
		}
		*known[name] = *known[name] || on
	}
	return nil
}

// Open opens the lock database at path. It creates the database if it is missing, in an existing
// directory; see Created. It waits while other processes do the same, until ctx ends.
//
// Some paths cannot be a lock database: a directory, a path in a missing directory, a file of
// another program, a database of another version of holdfast. So cannot a file whose locks others
// might not see, because it has several names, is itself a mount point, or is on a file system that
// other hosts may share; nor a file that any user may replace. Open then returns driver.ErrInvalid
// and changes nothing. If this user may not use a file, the error is driver.ErrPermission. Without
// a boot-time clock it is driver.ErrUnsupported.
//
// Nil options are the defaults.
func Open(ctx context.Context, path string, opts *Options) (*Engine, error) {
	clock, err := systemClock()
	if err != nil {
		return nil, err
	}
	s := newSetting(clock)
	s.Options = *cmp.Or(opts, &Options{})
	return s.open(ctx, path)
}

// A setting has the parameters of open.
type setting struct {
	Options
	clock      clock
	fileSystem func(path string) (kind string, err error)
	patience   time.Duration // how long to wait for missing or replaced files

	// added is the engine's initial count of added rows. It is random: short-lived engines together
	// sweep as often as a long-lived one, and few of them pay for a sweep.
	added int
}

func newSetting(c clock) setting {
	return setting{clock: c, fileSystem: onefile.FileSystem, patience: busyLimit, added: rand.IntN(sweepEvery)}
}

func (s setting) open(ctx context.Context, path string) (*Engine, error) {
	if ctx.Err() != nil {
		return nil, interrupted(ctx)
	}
	path, err := onefile.Locate(path)
	if err == nil {
		s.System = s.System || onefile.HasSystemForm(filepath.Dir(path))
		err = s.check(ctx, path)
	}
	if err != nil {
		return nil, onefile.PathError(err)
	}
	database := path
	if s.System {
		database = "" // only root creates its bells
	}
	e := &engine{
		path: path, system: s.System, history: s.History, clock: s.clock, added: s.added,
		bell: bell.Bell{Path: path + onefile.BellSuffix, Database: database}, alarm: bell.Bell{Path: path + onefile.AlarmSuffix, Database: database},
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
	return &Engine{e}, nil
}

// longestPath is the length of the longest path that SQLite opens, in bytes.
const longestPath = 504

// check fails if the file at path must not be opened.
func (s setting) check(ctx context.Context, path string) error {
	if len(path) > longestPath {
		return fmt.Errorf("%w path: it has %d bytes, and SQLite opens at most %d", driver.ErrInvalid, len(path), longestPath)
	}
	kind, err := s.fileSystem(filepath.Dir(path))
	if err == nil && !s.AllowNetwork && onefile.Remote(kind) { // Diagnose warns if the type is unknown
		return fmt.Errorf("%w path: %s is on %s, which other hosts may share, and these would not see its locks: "+
			"use a local disk, or a server; if no other host uses the file, say %s", driver.ErrInvalid, path, kind, paramNetwork)
	}
	if err := onefile.Check(path, s.System); err != nil {
		return err
	}
	return onefile.AwaitWhole(ctx, path, s.System, s.patience)
}

// connect opens the connection that writes, and prepares the database and its files.
func (e *engine) connect(ctx context.Context) error {
	dsn := e.dsn("mode", "rw")
	_, err := os.Stat(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		// A new database gets the permissions of the bell. Only SQLite may create it: if another
		// engine of this process has it open, closing a descriptor of ours would drop that engine's
		// file locks.
		if err := e.bell.Make(); err != nil {
			return onefile.PathError(err)
		}
		dsn = e.dsn("modeof", e.bell.Path)
	}
	if e.conn, err = e.newConn(dsn); err != nil {
		return err
	}
	if err := e.prepareDatabase(ctx); err != nil {
		return err
	}
	if err := e.bell.Make(); err != nil {
		return onefile.PathError(err)
	}
	_ = e.alarm.Make() // without it, renewals find losses
	// Check again: files may have changed since the first check.
	if err := onefile.Check(e.path, e.system); err != nil {
		return onefile.PathError(err)
	}
	if e.files, err = onefile.Hold(e.path, e.system); err != nil {
		return onefile.PathError(err)
	}
	if !e.files.SameBoot(e.clock.bootID) { // INVARIANT I1
		return fmt.Errorf("%w path: another program has the file open under another boot ID, which a container can have, and neither would see the locks of the other: "+
			"use a server", driver.ErrInvalid)
	}
	if err := e.files.Same(); err != nil { // the text only: another Open may succeed
		return fmt.Errorf("%w: %s", driver.ErrUnavailable, err.Error())
	}
	return nil
}

// openReader opens a read-only connection to the files of the engine.
func (e *engine) openReader() (*conn, error) {
	c, err := e.newConn(e.dsn("mode", "rw")) // it does not create a deleted database
	if err != nil {
		return nil, err
	}
	if err = c.execute(`PRAGMA query_only = ON; SELECT 1 FROM sqlite_schema`); err == nil { // opens the files
		err = e.files.Same() // INVARIANT I1: they may have changed since Open
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// dsn returns the SQLite URI of the database with one parameter. SQLite does not decode a
// plus sign as a space.
func (e *engine) dsn(key, value string) string {
	path := (&url.URL{Path: e.path}).EscapedPath()
	return "file://" + path + "?" + key + "=" + strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}
