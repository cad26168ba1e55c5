//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/codeblock"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// aGo replaces go in a clone: it builds the tree of this test, whose packages are in the cache, and
// puts the results into the clone.
const aGo = `#!/bin/sh
here=$PWD
case "$1 $2" in
"run ./cmd/holdfast")
	(cd TREE && GO build -o "$here/run-once" "$2") || exit
	shift 2
	exec ./run-once "$@" ;;
"build -o")
	cd TREE && exec GO build -o "$here/$3" "$4" ;;
"install ./cmd/holdfast")
	cd TREE && exec GO build -o "$here/installed" "$2" ;;
"mod tidy") # the same for what the program imports, and asks nobody on the network
	exec GO list -mod=mod -deps . >/dev/null ;;
esac
exec GO "$@"
`

// TestReadmeInOrder runs the commands of README.md one after the other, as a user who has only a
// clone types them: shell, installation, Go and HTTP.
func TestReadmeInOrder(t *testing.T) {
	t.Parallel()
	testsvc.Need(t, "curl", "curl", "curl")
	tree, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	realGo, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	house := t.TempDir()
	clone := filepath.Join(house, "clone")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(house, "bin"), 0o700), os.Mkdir(clone, 0o700), os.Symlink(tree, filepath.Join(house, "holdfast")),
		os.WriteFile(filepath.Join(house, "bin", "go"), []byte(strings.NewReplacer("TREE", tree, "GO", realGo).Replace(aGo)), 0o700), //nolint:gosec // a program
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	adapted := strings.NewReplacer(
		"CGO_ENABLED=0 ", "", // what the tests have built is in the cache
		"make test ", "make -C "+tree+" --dry-run test >/dev/null ", // which would run this test
		"bin/holdfast serve --demo", "bin/holdfast serve --demo --listen "+address+" & "+curl(address)+"; kill $!; wait $!",
		"bin/holdfast serve &", "bin/holdfast serve --listen "+address+" &",
		"scripts/release.sh ", "test -x "+tree+"/scripts/release.sh # ", // make release tests it
		"127.0.0.1:7420", address,
		"curl --fail-with-body", "curl --silent --retry 9 --retry-connrefused --fail-with-body",
		"sleep 20 &", "sleep 1 & until bin/holdfast check -q nightly; do sleep 0.05; done", // people type slowly
		"sleep 600 &", "sleep 600 & until bin/holdfast check -q nightly; do sleep 0.05; done",
	)
	var script strings.Builder
	blocks, problems := codeblock.Find("README.md", read(t, filepath.Join(tree, "README.md")))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	programs := 0
	for _, b := range blocks {
		switch {
		case b.Kind == "console":
			for _, m := range regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(b.Text, -1) {
				script.WriteString(adapted.Replace(m[1]) + "\n")
			}
		case strings.Contains(b.Text, "go mod edit"):
			// The module contains the next program of the page.
			script.WriteString("mkdir ../app && cd ../app && go mod init example.com/app && cp ../main.go .\n" + b.Text + "test -s go.mod && echo resolved; cd ../clone\n")
		case strings.Contains(b.Text, "@latest"): // there is no version yet
		case b.Kind == "bash" || b.Kind == "sh":
			script.WriteString(adapted.Replace(b.Text))
			if strings.Contains(b.Text, "serve &") {
				script.WriteString("kill $!; wait $!\n")
			}
		case b.Kind == "go" && programs == 0:
			programs++
			if err := os.WriteFile(filepath.Join(house, "main.go"), []byte(b.Text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.Command("sh", "-c", "exec 2>&1\n"+script.String()) //nolint:gosec // the commands of the page
	cmd.Dir = clone
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(house, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"), "XDG_STATE_HOME="+filepath.Join(house, "state"))
	cmd.WaitDelay = 5 * time.Second // for processes that are left in the background
	data, err := cmd.CombinedOutput()
	out := string(data)
	for _, want := range []string{
		"mine\n", "status 75\n", "waiting for nightly", // the first commands
		"resolved\n",       // the imports of the program, which TestREADMEExample runs
		`"fencing_token":`, // the server
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not print %q", want)
		}
	}
	if n := strings.Count(out, "mine\n"); n != 3 { // the run that does not wait prints none
		t.Errorf("the commands under the lock have run %d times, want 3", n)
	}
	for _, built := range []string{"bin/holdfast", "installed", "holdfast"} {
		if _, err := os.Stat(filepath.Join(clone, built)); err != nil {
			t.Error(err)
		}
	}
	for _, wrong := range []string{"not found", "No such file", "cannot find", "usage:"} {
		if strings.Contains(out, wrong) {
			t.Errorf("it prints %q", wrong)
		}
	}
	if err != nil || programs != 1 {
		t.Errorf("%v, and %d programs", err, programs)
	}
	if t.Failed() {
		t.Logf("%s\nof\n%s", out, script.String())
	}
}

// curl returns a command that waits until a server answers at an address.
func curl(address string) string {
	return "curl --silent --retry 9 --retry-connrefused --fail http://" + address + "/healthz"
}
