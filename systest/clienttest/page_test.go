//go:build unix

package clienttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/codeblock"
)

// TestPageShowsTheClients: what docs/clients.md shows stands in the clients.
func TestPageShowsTheClients(t *testing.T) {
	const page = "../../docs/clients.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"python": "python/holdfast.py", "js": "javascript/holdfast.mjs", "java": "java/Holdfast.java", "sh": "shell/with-lock.sh", "cfml": "cfml/Holdfast.cfc", "sql": "python/guard.py"}
	blocks, problems := codeblock.Find(page, string(text))
	for _, p := range problems {
		t.Error(p)
	}
	for _, b := range blocks {
		if b.CheckedBy != t.Name() {
			continue
		}
		file := files[b.Kind]
		client, err := os.ReadFile(tree + file)
		if err != nil {
			t.Fatalf("%s: %v", b.At(), err)
		}
		if !strings.Contains(bare(string(client)), bare(b.Text)) {
			t.Errorf("%s: is not in %s", b.At(), file)
		}
		delete(files, b.Kind)
	}
	for kind := range files {
		t.Errorf("the page shows nothing in %s", kind)
	}
}

// bare returns the lines of a text without what comments and indents begin them with.
func bare(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimLeft(strings.TrimSpace(line), "*/# "))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// TestGuard: the database of the example refuses a late holder.
func TestGuard(t *testing.T) {
	out, err := exec.Command("python3", "-B", tree+"python/guard.py").CombinedOutput()
	want := "ada True\nbob is refused: seat 12A: a later holder than 7 was here\n('ada', 8)\n"
	if err != nil || string(out) != want {
		t.Errorf("%v: %s\nwant %s", err, out, want)
	}
}

var (
	cfmlPath = regexp.MustCompile(`"(/v1/[a-z/]*)"`)
	cfmlText = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"[^"\n]*"`)
)

// TestCFML looks at the client in CFML, which nothing here can run: its brackets match,
// and it asks for what the server has.
func TestCFML(t *testing.T) {
	description, err := os.ReadFile("../../httplock/server/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(tree + "cfml/*.cfc")
	if err != nil || len(files) != 2 {
		t.Fatalf("%q, %v", files, err)
	}
	asked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range cfmlPath.FindAllStringSubmatch(string(text), -1) {
			asked++
			if path := strings.TrimSuffix(m[1], "/"); !strings.Contains(string(description), `"`+path+`"`) {
				t.Errorf("%s asks for %s, which openapi.json does not have", file, path)
			}
		}
		var open []rune
		for _, c := range cfmlText.ReplaceAllString(string(text), "") {
			switch i := strings.IndexRune("({[", c); {
			case i >= 0:
				open = append(open, rune(")}]"[i]))
			case strings.ContainsRune(")}]", c):
				if len(open) == 0 || open[len(open)-1] != c {
					t.Fatalf("%s: %q closes nothing", file, c)
				}
				open = open[:len(open)-1]
			}
		}
		if len(open) > 0 {
			t.Errorf("%s: %q is missing", file, open)
		}
	}
	if asked < 4 {
		t.Errorf("the client asks for %d paths", asked)
	}
}
