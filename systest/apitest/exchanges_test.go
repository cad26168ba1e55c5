package apitest

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/exchange"
)

const (
	tree        = "../.."
	description = tree + "/httplock/server/openapi.json"
)

// unseen are described responses that no test has seen, each with the reason.
var unseen = map[string]string{}

// TestExchanges runs the tests of the server's endpoints, sends the described examples to faulty
// servers, and compares all responses with the description. Every described response must be seen,
// and every field of a response described. A response with more fields, as a later version may send
// it, must still match the description.
func TestExchanges(t *testing.T) {
	a, later := read(t, closed), read(t, asItIs)
	dir := t.TempDir()
	cmd := exec.Command("go", "test", "-count=1", "./httplock/server/...")
	cmd.Dir, cmd.Env = tree, append(os.Environ(), exchange.Directory+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the tests of the doors fail: %v\n%s", err, out)
	}
	t.Setenv(exchange.Directory, dir)
	a.sweep(t)
	a.rest(t)
	all, err := exchange.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 1000 {
		t.Fatalf("%d exchanges: are the handlers of the tests recorded?", len(all))
	}
	told := map[string]bool{}
	for _, e := range all {
		err := a.check(e)
		if err == nil {
			e.Response.Body = widened(e)
			err = later.check(e)
		}
		if err != nil {
			if what := fmt.Sprintf("%s %d %.120s", e.Method, e.Status, err); !told[what] {
				told[what] = true
				t.Errorf("%s: %s %s: %d: %v", e.Test, e.Method, e.URL, e.Status, err)
			}
		}
	}
	for _, answer := range a.answers() {
		if a.seen[answer] == (unseen[answer] != "") {
			t.Errorf("%s of the description: seen in a test is %t; exception: %q", answer, a.seen[answer], unseen[answer])
		}
	}
	t.Logf("%d exchanges", len(all))
}

// read returns the description of the server, changed by edit.
func read(t *testing.T, edit func([]byte) []byte) *api {
	t.Helper()
	text, err := os.ReadFile(description)
	if err != nil {
		t.Fatal(err)
	}
	a, err := load(edit(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}
