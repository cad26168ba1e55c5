package recipes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/codeblock"
)

const page = "../../docs/recipes.md"

// link matches a link on the page to a file in this directory.
var link = regexp.MustCompile(`\]\(\.\./examples/recipes/([^)]+)\)`)

// TestPage checks that the page links to every file once, and that the files that it shows are
// unchanged.
func TestPage(t *testing.T) {
	text := read(t, page)
	var files, texts []string
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		files, texts = append(files, m[1]), append(texts, read(t, m[1]))
	}
	if there, err := filepath.Glob("*/*"); err != nil || len(there) != len(files) {
		t.Errorf("the files are %v, and the page names %v: %v", there, files, err)
	}
	blocks, _ := codeblock.Find(page, text)
	for _, b := range blocks {
		if !slices.Contains(texts, b.Text) {
			t.Errorf("%s is not one of the files", b.At())
		}
	}
}

// read returns the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// replaced returns text with each old string, which text must contain, replaced by the new string
// after it.
func replaced(t *testing.T, text string, oldNew ...string) string {
	t.Helper()
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(text, oldNew[i]) {
			t.Fatalf("no %q in\n%s", oldNew[i], text)
		}
	}
	return strings.NewReplacer(oldNew...).Replace(text)
}
