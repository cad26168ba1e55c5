package recipes

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/codeblock"
)

const page = "../../docs/recipes.md"

// link leads from the page to a file here.
var link = regexp.MustCompile(`\]\(\.\./examples/recipes/([^)]+)\)`)

// TestPage: the page shows every file, as it is, in the order in which it names them.
func TestPage(t *testing.T) {
	text := read(t, page)
	blocks, _ := codeblock.Find(page, text)
	var files []string
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		files = append(files, m[1])
	}
	if len(files) != len(blocks) {
		t.Fatalf("%s names %d files and shows %d", page, len(files), len(blocks))
	}
	for i, file := range files {
		if want := read(t, file); blocks[i].Text != want {
			t.Errorf("%s does not show %s as it is:\n%s", page, file, blocks[i].Text)
		}
	}
	there, err := filepath.Glob("*/*")
	if err != nil || len(there) != len(files) {
		t.Errorf("the files are %v, and the page names %v: %v", there, files, err)
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

// replaced returns text in which each of old stands at least once and has got the new
// one behind it.
func replaced(t *testing.T, text string, oldNew ...string) string {
	t.Helper()
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(text, oldNew[i]) {
			t.Fatalf("no %q in\n%s", oldNew[i], text)
		}
	}
	return strings.NewReplacer(oldNew...).Replace(text)
}
