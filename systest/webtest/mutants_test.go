//go:build web

package webtest

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var (
	mutants = flag.Bool("mutants", false, "whether the faults of the page are put in, one after the other")
	command = flag.String("holdfast", "", "the holdfast to test, which is built otherwise")
)

// faults are put into the page and its server, one at a time; the test that is named must
// fail of each. Those of systest/faults need no browser.
var faults = []struct{ name, file, old, new, foundBy string }{
	{"a name is written as markup", "dashboard/web/parts.js",
		`return html` + "`" + `<bdi class="text" title=${title}>${`, `return html` + "`" + `<bdi class="text" dangerouslySetInnerHTML=${{__html: value}}></bdi><bdi hidden>${`, "TestHostileTexts/markup"},
	{"a style in the markup", "dashboard/web/index.html", `<div id="page">`, `<div id="page" style="color: red">`, "TestPageIsShown"},
	{"addresses begin at the root", "dashboard/web/api.js", `await fetch(path +`, `await fetch("/" + path +`, "TestPrefix/nginx"},
	{"nobody is told that the page is stale", "dashboard/web/frame.js", "${stale.value && html`<${Stale} />`}", "", "TestRestart"},
	{"a bar does not hear of renewals", "dashboard/web/bar.js", `if (same && Math.abs(moved)`, `if (same || Math.abs(moved)`, "TestBarDrainsAndJumps"},
	{"a table without a name", "dashboard/web/table.js", `role="grid" aria-label="Locks"`, `role="grid"`, "TestAccessibility"},
	{"texts that are too faint", "dashboard/web/css/base.css", `--muted: light-dark(#56606c, #9ca6b2)`, `--muted: light-dark(#96a0ac, #9ca6b2)`, "TestAccessibility"},
	{"losses are not told to those who see nothing", "dashboard/web/frame.js", `aria-label="Losses">${told}</div>`, `aria-label="Losses"></div>`, "TestLossesAndFreezes"},
	{"whoever may read may break", "httplock/server/internal/leasedoor/break.go", `r.Named(caller.Break)`, `r.Named(caller.Read)`, "TestBreakIsRefused"},
	{"pages of other sites may break", "httplock/server/admit.go", `return browsers.Check(r) != nil`, `return false && browsers.Check(r) != nil`, "TestBreakIsRefused"},
}

// TestMutants puts each fault in, and runs the test that must find it, in a process of its
// own. It takes minutes: go test -tags web -run TestMutants -mutants -timeout 20m.
// Without the flag it sees to it that each fault still has its place.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, f.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), f.old); n != 1 {
				t.Fatalf("%s has %q %d times, want once", f.file, f.old, n)
			}
			if !*mutants {
				return
			}
			binary := buildFaulty(t, root, f.file, strings.Replace(string(text), f.old, f.new, 1))
			out, err := exec.Command(os.Args[0], "-test.run", "^"+strings.ReplaceAll(f.foundBy, "/", "$/^")+"$", "-test.timeout", "2m", "-holdfast", binary).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: "+strings.Split(f.foundBy, "/")[0]) {
				t.Errorf("%s does not find it: %v\n%s", f.foundBy, err, out)
			}
		})
	}
}

// buildFaulty builds the command with another text in place of a file.
func buildFaulty(t *testing.T, root, file, text string) string {
	t.Helper()
	dir := t.TempDir()
	faulty, overlay, binary := filepath.Join(dir, "faulty"+filepath.Ext(file)), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "holdfast")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, file): faulty}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{faulty: []byte(text), overlay: list} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-overlay", overlay, "-o", binary, "github.com/holdfast-locks/holdfast/cmd/holdfast").CombinedOutput(); err != nil {
		t.Fatalf("build it: %v\n%s", err, out)
	}
	return binary
}
