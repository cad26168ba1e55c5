//go:build unix

package keeper

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	suffix  = ".sock"
	maxPath = 103         // what sockets take on every system, including a zero byte
	maxName = 20 + 13 + 5 // of socketName
	old     = time.Minute // a socket without a listener that is not being made
	swept   = 16          // sockets that one process looks at
	tmp     = "/tmp"      // where paths are short
	ours    = "holdfast"  // in a directory of this user
	shared  = ours + "-"  // and the user's number, in one of all users
)

// directory returns the directory for sockets, and makes it if it is not there.
func directory(getenv func(string) string) (string, error) {
	uid := strconv.Itoa(os.Geteuid())
	var errs []error
	for _, dir := range []string{
		filepath.Join(getenv("XDG_RUNTIME_DIR"), ours),
		filepath.Join(cmp.Or(getenv("TMPDIR"), tmp), shared+uid),
		filepath.Join(tmp, shared+uid),
	} {
		switch {
		case !filepath.IsAbs(dir):
			continue
		case len(dir)+1+maxName > maxPath:
			errs = append(errs, fmt.Errorf("%s: the path is too long", dir))
			continue
		}
		err := private(dir)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no directory for a control socket: %w", oneLine(errs))
}

// oneLine joins errors.
func oneLine(errs []error) error {
	var texts []string
	for _, err := range errs {
		if !slices.Contains(texts, err.Error()) {
			texts = append(texts, err.Error())
		}
	}
	return errors.New(strings.Join(texts, "; "))
}

// private makes a directory if it is missing. It returns an error if another user can open
// it, or replace it.
func private(dir string) error {
	parent, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		return err
	}
	if !keeps(parent) {
		return fmt.Errorf("%s: others can replace what is in it", filepath.Dir(dir))
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir) // a link is not a directory
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s: it is not a directory", dir)
	case owner(info) != os.Geteuid():
		return fmt.Errorf("%s: it belongs to another user (uid %d)", dir, owner(info))
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s: others can open it: chmod 700 %s", dir, dir)
	}
	return nil
}

// keeps reports whether other users cannot rename or delete what this user puts into a
// directory.
func keeps(dir fs.FileInfo) bool {
	mine := owner(dir) == os.Geteuid() || owner(dir) == 0
	return mine && (dir.Mode().Perm()&0o022 == 0 || dir.Mode()&fs.ModeSticky != 0)
}

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// sweep deletes old sockets without a listener: their processes were killed. A new one may
// still be in the making.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	// In a fixed order, a few live ones could hide all others.
	rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	looked := 0
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasSuffix(e.Name(), suffix) || time.Since(info.ModTime()) < old {
			continue
		}
		if looked++; looked > swept {
			return
		}
		path := filepath.Join(dir, e.Name())
		conn, err := net.DialTimeout("unix", path, 100*time.Millisecond)
		switch {
		case err == nil:
			_ = conn.Close()
		case errors.Is(err, syscall.ECONNREFUSED):
			_ = os.Remove(path)
		}
	}
}
