//go:build versions

package systest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// before is the commit used as the last version until there is a tag. Its key layouts, file schema
// and wire formats are those of v0.1.0.
const before = "affff7cd99b26337ed056ae84560b56dd9806583"

// TestTwoVersions checks that the commands of the last version and of this tree can share one
// Redis, one file and one server under load, and that each understands what the other leaves.
func TestTwoVersions(t *testing.T) {
	old, now := versions(t)
	redis := testsvc.Redis(t).URL
	serve := func(program string) string {
		return testsvc.Program(t, program, "http://", func(addr, _ string) []string {
			return []string{"serve", "--store", redis, "--listen", addr}
		}).URL
	}
	stores := map[string][]string{ // URLs of one store
		"file":   {"sqlite://" + filepath.Join(t.TempDir(), "locks.db")},
		"Redis":  {redis},
		"server": {redis, serve(old), serve(now)}, // and also the server's own store
	}
	for name, urls := range stores {
		t.Run(name, func(t *testing.T) {
			var pairs []sharer
			for _, url := range urls {
				pairs = append(pairs, sharer{"old", old, url}, sharer{"now", now, url})
			}
			underLoad(t, pairs, strings.ToLower(name)+"/load")
			for i, s := range pairs {
				next := pairs[(i+1)%len(pairs)] // of the other version
				understand(t, s, next, fmt.Sprintf("%s/%d", strings.ToLower(name), i))
			}
		})
	}
}

// versions builds the last version and this tree.
func versions(t *testing.T) (old, now string) {
	t.Helper()
	base := before
	if tag, err := exec.Command("git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*").Output(); err == nil {
		base = strings.TrimSpace(string(tag))
	}
	dir := t.TempDir()
	tree, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	earlier := filepath.Join(dir, "earlier")
	if err := os.Mkdir(earlier, 0o755); err != nil { //nolint:gosec // a source tree
		t.Fatal(err)
	}
	for _, step := range []struct {
		in   string
		args []string
	}{
		{tree, []string{"sh", "-c", `git archive "$1" | tar -xf - -C "$2"`, "sh", base, earlier}},
		{earlier, []string{"go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "old"), "./cmd/holdfast"}},
		{tree, []string{"go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "now"), "./cmd/holdfast"}},
	} {
		cmd := exec.Command(step.args[0], step.args[1:]...)
		cmd.Dir = step.in
		cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(step.in, "go.work"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", step.args, err, out)
		}
	}
	return filepath.Join(dir, "old"), filepath.Join(dir, "now")
}

// A sharer is the command of one version, with a URL of a store.
type sharer struct{ version, program, url string }

// run runs the command, which must exit with status, and returns its output.
func (s sharer) run(t *testing.T, status int, args ...string) string {
	t.Helper()
	cmd := exec.Command(s.program, args...)
	cmd.Env = append(os.Environ(), "HOLDFAST_STORE="+s.url)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("%s, %s: %s: status %d, want %d: %v\n%s%s", s.version, s.url, args, got, status, err, out, errors.String())
	}
	return string(out)
}

// underLoad lets all sharers take turns at one lock, and others use a semaphore. It checks that no
// two hold the lock at once, that no more than two have a seat, and that the tokens grow.
func underLoad(t *testing.T, sharers []sharer, name string) {
	t.Helper()
	const workers, rounds = 2, 3
	dir := t.TempDir()
	alone := `mkdir "$1/busy" || exit 9; echo "$HOLDFAST_FENCING_TOKEN" >>"$1/tokens"; rmdir "$1/busy"`
	seat := `n=$(mktemp "$1/seat.XXXXXX"); [ $(ls "$1" | grep -c seat) -le 2 ] || exit 8; rm "$n"`
	var wg sync.WaitGroup
	for _, s := range sharers {
		for range workers {
			wg.Go(func() {
				for range rounds {
					s.run(t, 0, "run", "-q", "-w", "3m", name, "--", "sh", "-c", alone, "sh", dir)
				}
			})
		}
		wg.Go(func() {
			for range rounds {
				s.run(t, 0, "run", "-q", "-w", "3m", "--slots", "2", name+"/seats", "--", "sh", "-c", seat, "sh", dir)
			}
		})
	}
	wg.Wait()
	text, err := os.ReadFile(filepath.Join(dir, "tokens"))
	if err != nil {
		t.Fatal(err)
	}
	var tokens []uint64
	for _, field := range strings.Fields(string(text)) {
		token, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	grow := slices.IsSortedFunc(tokens, func(a, b uint64) int { return cmp.Or(cmp.Compare(a, b), 1) })
	if want := len(sharers) * workers * rounds; len(tokens) != want || !grow {
		t.Errorf("%d tokens, want %d that grow: %d", len(tokens), want, tokens)
	}
}

// understand checks that a hold, a result and a shared lock that one version leaves are found by
// the other.
func understand(t *testing.T, left, found sharer, name string) {
	t.Helper()
	left.run(t, 0, "hold", "-q", name, "--for", "10m", "--reason", "left by another version")
	found.run(t, 75, "run", "-n", "-q", name, "--", "true")
	if out := found.run(t, 0, "show", name); !strings.Contains(out, "left by another version") {
		t.Errorf("%s shows %s", found.version, out)
	}
	if out := found.run(t, 0, "ls", name); !strings.Contains(out, name) {
		t.Errorf("%s lists %s", found.version, out)
	}
	if left.url == found.url { // with another URL it belongs to another user
		found.run(t, 0, "hold", "-q", name, "--extend", "--for", "20m")
		found.run(t, 0, "release", name)
	} else {
		found.run(t, 0, "break", name, "--reason", "enough")
	}
	left.run(t, 0, "run", "-n", "-q", name, "--", "true")
	left.run(t, 0, "once", "-q", name+"/once", "--", "echo", "done by "+left.version)
	if out := found.run(t, 0, "once", "-q", "--replay", name+"/once", "--", "echo", "again"); out != "done by "+left.version+"\n" {
		t.Errorf("%s replays %q", found.version, out)
	}
	left.run(t, 0, "hold", "-q", "-s", name+"/shared", "--for", "10m", "--reason", "reads")
	found.run(t, 75, "run", "-n", "-q", name+"/shared", "--", "true")
	found.run(t, 0, "run", "-n", "-q", "-s", name+"/shared", "--", "true")
	found.run(t, 0, "break", name+"/shared", "--reason", "enough")
	left.run(t, 0, "run", "-n", "-q", name+"/shared", "--", "true")
}
