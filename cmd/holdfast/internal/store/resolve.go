package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/storeurl"
)

const (
	systemConfig = "/etc/holdfast.conf"
	systemStore  = "/var/lib/holdfast/locks.db"

	// Group is the default group of the system store: its members, and root, may use the store.
	Group = "holdfast"

	variable     = "HOLDFAST_STORE"
	fileVariable = "HOLDFAST_STORE_FILE"
)

// ErrBoth means that a URL and a file are named in the same place.
var ErrBoth = errors.New("both name a store: want one of them")

// Asked has the store flags of a command, and the places to look without them.
type Asked struct {
	Store, File string              // --store, --store-file; empty if they were not given
	Getenv      func(string) string // of the environment
	Root        string              // prefix of system paths, for tests
}

// A Choice is the store that a command uses.
type Choice struct {
	URL     string        // may have credentials: print Public
	Source  string        // what has named it, for people
	ByFlag  bool          // a flag of this command named it
	System  bool          // it is the system store
	Dir     string        // its directory, which Open makes if missing; empty: Open makes none
	TTL     time.Duration // of leases, without a flag; 0 if no file has one
	history bool          // the configuration turns history on

	Env []string // environment entries for commands under a lock of this store, so that they find it too
}

// Public returns the URL without credentials.
func (c Choice) Public() string { return storeurl.Public(c.URL) }

// Resolve returns the store that counts: the first of these that is named,
//
//  1. --store, or the file of --store-file,
//  2. $HOLDFAST_STORE, or the file of $HOLDFAST_STORE_FILE,
//  3. the user's holdfast.conf,
//  4. /etc/holdfast.conf,
//  5. the system store, if its file exists,
//  6. the user's own file.
//
// Two processes with different stores would both get a lock. So all processes use this one order,
// and a store that is named but cannot be used is an error: Resolve never tries the next one. It
// opens and makes nothing. The errors wrap driver.ErrInvalid, driver.ErrPermission or ErrBoth,
// and contain no credentials.
func (a Asked) Resolve() (Choice, error) {
	named := []func() (Choice, error){
		func() (Choice, error) {
			c, err := fromPair("--store", a.Store, "--store-file", a.File)
			c.ByFlag = true
			return c, err
		},
		func() (Choice, error) {
			return fromPair("$"+variable, a.Getenv(variable), "$"+fileVariable, a.Getenv(fileVariable))
		},
		func() (Choice, error) { return fromConfig(a.userPath("XDG_CONFIG_HOME", ".config", "holdfast.conf")) },
		func() (Choice, error) { return fromConfig(a.Root + systemConfig) },
		a.system,
		a.own,
	}
	var ttl time.Duration
	history := false
	for _, name := range named {
		c, err := name()
		ttl, history = cmp.Or(ttl, c.TTL), history || c.history
		if err == nil {
			err = checkForm(c)
		}
		if err != nil || c.URL != "" {
			c.TTL = ttl
			c.Env = a.env()
			c.System = c.System || strings.HasPrefix(c.URL, "sqlite:") && storeurl.Same(c.URL, a.systemURL())
			if history {
				c.URL = withHistory(c.URL)
			}
			return c, err
		}
	}
	return Choice{}, fmt.Errorf("%w store: there is none", driver.ErrInvalid) // not reached: own returns a store or an error
}

// checkForm refuses an address or a path in place of a URL, and suggests the URL.
func checkForm(c Choice) error {
	var url string
	_, port, err := net.SplitHostPort(c.URL)
	_, notNumber := strconv.ParseUint(port, 10, 16)
	switch {
	case err == nil && port == "7420":
		url = "http://" + c.URL
	case err == nil && port == "5432":
		url = "postgres://" + c.URL + "/DATABASE"
	case err == nil && notNumber == nil:
		url = "redis://" + c.URL
	case strings.HasPrefix(c.URL, "/"), strings.HasPrefix(c.URL, "."), strings.HasSuffix(c.URL, ".db") && !strings.Contains(c.URL, ":"):
		url = c.URL
		if file, err := filepath.Abs(c.URL); err == nil {
			url = sqliteURL(file)
		}
	default:
		return nil
	}
	return fmt.Errorf("%w store: %s: %s is not a URL: did you mean %s?", driver.ErrInvalid, c.Source, c.URL, url)
}

// fromPair returns the store that a URL names, or that the URL in a file names.
func fromPair(urlName, rawURL, fileName, path string) (Choice, error) {
	switch {
	case rawURL != "" && path != "":
		return Choice{}, fmt.Errorf("%s and %s: %w", urlName, fileName, ErrBoth)
	case rawURL != "":
		return Choice{URL: rawURL, Source: urlName}, nil
	case path == "":
		return Choice{}, nil
	}
	c := Choice{Source: fileName + " " + path}
	f, err := read(path)
	if err != nil {
		return c, fmt.Errorf("%s: %w", fileName, err)
	}
	if c.URL = strings.TrimSpace(f.text); c.URL == "" || strings.ContainsAny(c.URL, "\n ") {
		return c, fmt.Errorf("%w store: %s %s: want one line, the URL of the store", driver.ErrInvalid, fileName, path)
	}
	return c, f.checkSecret(c.URL)
}

// env returns the entries that a command needs in addition to its environment to find the store.
// There are none if the environment or a file that all processes read names the store. They never
// contain a password.
func (a Asked) env() []string {
	switch {
	case a.Getenv(variable) != "" || a.Getenv(fileVariable) != "":
	case a.Store != "" && !storeurl.HasCredentials(a.Store):
		return []string{variable + "=" + a.Store}
	case a.File != "":
		if path, err := filepath.Abs(a.File); err == nil {
			return []string{fileVariable + "=" + path}
		}
	}
	return nil
}

// userPath returns the path of a file or directory of the user's: in the directory that a variable
// of the XDG specification names or, without it, in one below the home directory. It returns "" for
// a user without a home directory.
func (a Asked) userPath(variable, below, name string) string {
	dir := a.Getenv(variable)
	if !filepath.IsAbs(dir) { // the specification ignores such values
		if dir = a.home(); dir == "" {
			return ""
		}
		dir = filepath.Join(dir, below)
	}
	return filepath.Join(dir, name)
}

// home returns the user's home directory, or "". Without HOME it is the home of the user's account: a
// service without HOME must not use another store than the same user's shell.
func (a Asked) home() string {
	if home := a.Getenv("HOME"); filepath.IsAbs(home) {
		return home
	}
	if u, err := user.LookupId(fmt.Sprint(os.Geteuid())); err == nil && filepath.IsAbs(u.HomeDir) {
		return a.Root + u.HomeDir
	}
	return ""
}

// system returns the system store if it exists. A user without access to it must not use another
// store.
func (a Asked) system() (Choice, error) {
	c := Choice{Source: "the system store", System: true}
	switch _, err := os.Lstat(a.Root + systemStore); {
	case isAbsent(err):
		return Choice{}, nil
	case err != nil && !errors.Is(err, fs.ErrPermission): // Open reports missing rights
		return c, fmt.Errorf("%w: the system store: %w", driver.ErrInvalid, err)
	}
	c.URL = a.systemURL()
	return c, nil
}

// systemURL returns the URL of the system store.
func (a Asked) systemURL() string { return sqliteURL(a.Root + systemStore) }

// own returns the store in the user's own file.
func (a Asked) own() (Choice, error) {
	c := Choice{Source: "your own file"}
	dir, err := a.StateDir()
	if err != nil {
		return c, fmt.Errorf("%w store: nothing names one, and %w, or name a store with --store", driver.ErrInvalid, err)
	}
	c.Dir, c.URL = dir, sqliteURL(filepath.Join(dir, "locks.db"))
	return c, nil
}

// StateDir returns the directory for holdfast's data of this user, which may not exist.
func (a Asked) StateDir() (string, error) {
	dir := a.userPath("XDG_STATE_HOME", ".local/state", "holdfast")
	if dir == "" {
		return "", errors.New("there is no home directory for your own: set HOME")
	}
	return dir, nil
}

func sqliteURL(path string) string { return (&url.URL{Scheme: "sqlite", Path: path}).String() }

// isAbsent reports whether the file certainly does not exist.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
