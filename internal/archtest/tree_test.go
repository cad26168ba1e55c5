package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// tree is the root of the repository. Paths are relative to it.
const tree = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tree, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// walk calls visit for all files below a directory, except in hidden directories.
func walk(t *testing.T, below string, visit func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(tree), below, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != ".":
			return fs.SkipDir
		case !d.IsDir():
			visit(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// pages returns the text of all documents.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	walk(t, ".", func(name string) {
		if path.Ext(name) == ".md" {
			all[name] = read(t, name)
		}
	})
	if len(all) < 30 {
		t.Fatalf("%d pages", len(all))
	}
	return all
}
