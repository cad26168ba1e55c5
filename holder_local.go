package holdfast

import (
	"bufio"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

// localHolder names this process, or the person who runs it. What h says already
// stays.
func localHolder(h Holder) Holder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	h.Host, h.User = host, localUser("/etc/passwd", os.Geteuid())
	if h.Person {
		return h
	}
	h.PID, h.Program = os.Getpid(), cmp.Or(h.Program, localProgram())
	return h
}

// passwdLongest is how much of the file of users is read.
const passwdLongest = 1 << 20

// localUser returns the name of a user, or the number if the file of users has no name
// for it, as in many containers; nothing where users have no numbers. It reads that
// file and asks nobody: a directory service may hang, and the environment may be
// another user's.
func localUser(file string, id int) string {
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

// localProgram returns the base name of this program, and nothing of its arguments.
func localProgram() string {
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
