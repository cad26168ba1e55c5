package holdfast

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryFileIsOnTheMap: whoever reads doc.go knows of each file, and looks for
// none that is gone.
func TestEveryFileIsOnTheMap(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{"doc.go": true}
	for _, pattern := range regexp.MustCompile(`[a-z_*]+\.go`).FindAllString(string(doc), -1) {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Errorf("there is no %s (%v)", pattern, err)
		}
		for _, file := range files {
			named[file] = true
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files (%v), want at least 50: are they found?", len(files), err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") && !named[file] {
			t.Errorf("doc.go does not name %s, nor its family", file)
		}
	}
}
