//go:build unix

package clienttest

import (
	"os"
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
	files := map[string]string{"python": "python/holdfast.py", "js": "javascript/holdfast.mjs", "java": "java/Holdfast.java", "sh": "shell/with-lock.sh"}
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
