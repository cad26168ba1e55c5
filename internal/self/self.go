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

// Holder fills in h for this process, or for the person who runs it if h.Person is set. It keeps
// h.Program.
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

// passwdLongest is how many bytes of /etc/passwd are read.
const passwdLongest = 1 << 20

// user returns the name of the user with this ID, or the ID if file has no name for it, as in many
// containers. It returns "" on systems without user IDs. It reads only file: a directory service
// may hang, and the environment may be another user's.
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

// program returns the base name of this program, without its arguments.
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
