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

	// Group is the group whose members use the system store, with root, unless
	// another one is named when it is made.
	Group = "holdfast"

	variable     = "HOLDFAST_STORE"
	fileVariable = "HOLDFAST_STORE_FILE"
)

// ErrBoth means that a URL and a file are named in the same place.
var ErrBoth = errors.New("both name a store: want one of them")

// Asked has the store flags of a command, and where to look without them.
type Asked struct {
	Store, File string              // --store, --store-file; empty if they were not given
	Getenv      func(string) string // of the environment
	Root        string              // a prefix of the system's own paths; only tests have one
}

// A Choice is the store that counts.
type Choice struct {
	URL     string        // may have credentials: show Public
	Source  string        // what has named it, for people
	ByFlag  bool          // it was named by a flag of this very command
	System  bool          // it is the system store
	Dir     string        // is made for it if it is not there; empty if it must be
	TTL     time.Duration // of leases, unless a flag is given; 0 if no file has one
	history bool          // the configuration turns history on

	Env []string // what a command that runs under a lock of this store needs to find it too
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
// Two processes with different stores would both get a lock. So there is this one
// order for all, and what is named and cannot be used is an error: it never goes
// on to the next. It opens and makes nothing. The errors wrap driver.ErrInvalid,
// driver.ErrPermission or ErrBoth, and have no credentials in them.
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
		func() (Choice, error) { return fromConfig(a.userConfig()) },
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
	return Choice{}, fmt.Errorf("%w store: there is none", driver.ErrInvalid) // the last one fails instead
}

// checkForm refuses an address or a path in place of a URL, and shows the URL.
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

// fromPair returns the store that a URL names, or the file that has the URL.
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

// env returns what the environment of a command lacks that is to find the store
// by itself: nothing if the environment or a file that everybody reads has named
// it, and never a password.
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

// userConfig returns the path of the user's configuration, or nothing for a user
// who has no home.
func (a Asked) userConfig() string {
	dir := a.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the XDG specification ignores such values
		if dir = a.home(); dir == "" {
			return ""
		}
		dir = filepath.Join(dir, ".config")
	}
	return filepath.Join(dir, "holdfast.conf")
}

// home returns the user's home directory, or nothing. Where the environment has
// none it is the home of the user's account: a service without HOME must not use
// another store than the same user's shell.
func (a Asked) home() string {
	if home := a.Getenv("HOME"); filepath.IsAbs(home) {
		return home
	}
	if u, err := user.LookupId(fmt.Sprint(os.Geteuid())); err == nil && filepath.IsAbs(u.HomeDir) {
		return a.Root + u.HomeDir
	}
	return ""
}

// system returns the system store if there is one. A user that may not look there must not
// use another store.
func (a Asked) system() (Choice, error) {
	c := Choice{Source: "the system store", System: true}
	switch _, err := os.Lstat(a.Root + systemStore); {
	case isAbsent(err):
		return Choice{}, nil
	case err != nil && !errors.Is(err, fs.ErrPermission): // who may use it is said when it is opened
		return c, fmt.Errorf("%w: the system store: %w", driver.ErrInvalid, err)
	}
	c.URL = a.systemURL()
	return c, nil
}

// systemURL names the system store.
func (a Asked) systemURL() string { return sqliteURL(a.Root + systemStore) }

// own returns the user's own file.
func (a Asked) own() (Choice, error) {
	c := Choice{Source: "your own file"}
	dir, err := a.StateDir()
	if err != nil {
		return c, fmt.Errorf("%w store: nothing names one, and %w, or name a store with --store", driver.ErrInvalid, err)
	}
	c.Dir = dir
	c.URL = sqliteURL(filepath.Join(c.Dir, "locks.db"))
	return c, nil
}

// StateDir returns the directory for what holdfast keeps for this user, which may not
// be there.
func (a Asked) StateDir() (string, error) {
	state := a.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		if state = a.home(); state == "" {
			return "", errors.New("there is no home directory for your own: set HOME")
		}
		state = filepath.Join(state, ".local", "state")
	}
	return filepath.Join(state, "holdfast"), nil
}

func sqliteURL(path string) string { return (&url.URL{Scheme: "sqlite", Path: path}).String() }

// isAbsent reports whether the file certainly does not exist.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
