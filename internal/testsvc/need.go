package testsvc

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// places are where Debian and Homebrew keep programs that are not on a user's PATH.
var places = []string{
	"/usr/sbin/%s",
	"/usr/lib/postgresql/*/bin/%s",
	"/opt/homebrew/opt/postgresql@*/bin/%s",
	"/usr/local/opt/postgresql@*/bin/%s",
	"/opt/homebrew/opt/mariadb/bin/%s",
	"/usr/local/opt/mariadb/bin/%s",
}

// Need returns the path of a program that the test runs. If the program is missing, the
// test fails with one line that names the Debian package and the Homebrew formula; under
// -short, which make test uses, the test is skipped with that line.
func Need(t testing.TB, program, debian, brew string) string {
	t.Helper()
	if path, ok := look(program); ok {
		return path
	}
	missing := fmt.Sprintf("%s is missing: apt-get install --no-install-recommends %s", program, debian)
	if runtime.GOOS == "darwin" {
		missing = fmt.Sprintf("%s is missing: brew install %s", program, brew)
	}
	if testing.Short() {
		t.Skip(missing)
	}
	t.Fatal(missing)
	return ""
}

// must fails the test at once if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func look(program string) (path string, ok bool) {
	if path, err := exec.LookPath(program); err == nil {
		return path, true
	}
	for _, place := range places {
		if found, _ := filepath.Glob(fmt.Sprintf(place, program)); len(found) > 0 {
			return found[len(found)-1], true
		}
	}
	return "", false
}

// Long skips the test under -short: it takes many seconds, or repeats on another kind of
// store what a faster test has shown. make test-all runs it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long; make test-all runs it")
	}
}
