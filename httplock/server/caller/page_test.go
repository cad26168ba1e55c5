package caller_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/codeblock"
)

// TestPageOfCallers checks that the files of callers in the documentation can be opened.
func TestPageOfCallers(t *testing.T) {
	const page = "docs/server.md"
	text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	blocks, problems := codeblock.Find(page, string(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	found := 0
	for _, b := range blocks {
		if b.Kind != "json" {
			continue
		}
		found++
		path := filepath.Join(t.TempDir(), "callers.json")
		if err := os.WriteFile(path, []byte(b.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := caller.Open(path, &caller.FileOptions{Verifier: func(caller.Issuer) (caller.Verifier, error) { return verifier{}, nil }}); err != nil {
			t.Errorf("%s: %v", b.At(), err)
		}
	}
	if found != 2 {
		t.Errorf("%d files of callers in the page, want 2", found)
	}
}
