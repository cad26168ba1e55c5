// Package self describes this process as the holder of a lock.
package self

import (
	"bufio"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Holder completes h with this process, or with the person who runs it. A Program in h
// remains.
func Holder(h lockinfo.Holder) lockinfo.Holder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	h.Host, h.User = host, user("/etc/passwd", os.Geteuid())
	if h.Person {
		return h
	}
	h.PID, h.Program = os.Getpid(), cmp.Or(h.Program, program())
	return h
}

// passwdLongest is how much of the file of users is read.
const passwdLongest = 1 << 20

// user returns the name of a user, or the number if the file of users has no name
// for it, as in many containers; nothing where users have no numbers. It reads that
// file only: a directory service may hang, and the environment may be
// another user's.
func user(file string, id int) string {
	if id < 0 {
		return ""
	}
	number := strconv.Itoa(id)
	f, err := os.Open(file)
	if err != nil {
		return number
	}
	defer f.Close()
	for lines := bufio.NewScanner(io.LimitReader(f, passwdLongest)); lines.Scan(); {
		// name:password:number:...
		if name, rest, _ := strings.Cut(lines.Text(), ":"); name != "" && driver.IsText(name) {
			if _, rest, _ = strings.Cut(rest, ":"); strings.HasPrefix(rest, number+":") {
				return name
			}
		}
	}
	return number
}

// program returns the base name of this program, and nothing of its arguments.
func program() string {
	path, err := os.Executable()
	if err != nil && len(os.Args) > 0 {
		path = os.Args[0]
	}
	if path == "" {
		return ""
	}
	if name := filepath.Base(path); driver.IsText(name) {
		return name
	}
	return ""
}
