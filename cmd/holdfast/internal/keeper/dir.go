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
	maxPath = 103         // the longest path for a socket on all systems
	maxName = 20 + 13 + 5 // of the result of socketName
	old     = time.Minute // age from which a socket without a listener is abandoned
	swept   = 16          // how many entries one sweep checks
	tmp     = "/tmp"      // where paths are short
	ours    = "holdfast"  // the name in a directory of this user
	shared  = ours + "-"  // with the user ID, the name in a directory of all users
)

// directory returns the directory for sockets, and makes it if it does not exist.
func directory(getenv func(string) string) (string, error) {
	user := shared + strconv.Itoa(os.Geteuid())
	var why []string
	for _, dir := range slices.Compact([]string{
		filepath.Join(getenv("XDG_RUNTIME_DIR"), ours), filepath.Join(cmp.Or(getenv("TMPDIR"), tmp), user), filepath.Join(tmp, user),
	}) {
		if !filepath.IsAbs(dir) {
			continue
		}
		err := private(dir)
		if err == nil {
			return dir, nil
		}
		why = append(why, err.Error())
	}
	return "", fmt.Errorf("no directory for a control socket: %s", strings.Join(why, "; "))
}

// private makes a directory if it is missing. It returns an error if another user can open
// it, or replace it.
func private(dir string) error {
	if len(dir)+1+maxName > maxPath {
		return fmt.Errorf("%s: the path is too long", dir)
	}
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

// keeps reports whether other users cannot rename or delete files of this user in a directory.
func keeps(dir fs.FileInfo) bool {
	mine := owner(dir) == os.Geteuid() || owner(dir) == 0
	return mine && (dir.Mode().Perm()&0o022 == 0 || dir.Mode()&fs.ModeSticky != 0)
}

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// sweep deletes old sockets without a listener, whose processes were killed. A new one may not
// have its listener yet.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	// In a fixed order, a few live ones could hide all others.
	for _, i := range rand.Perm(len(entries))[:min(swept, len(entries))] {
		e := entries[i]
		info, err := e.Info()
		if err != nil || !strings.HasSuffix(e.Name(), suffix) || time.Since(info.ModTime()) < old {
			continue
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
