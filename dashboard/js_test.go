package dashboard_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-locks/holdfast/dashboard"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// jsDir returns a directory in which node finds the page's files and their tests.
func jsDir(t *testing.T) string {
	t.Helper()
	testsvc.Need(t, "node", "nodejs", "node")
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "js"), os.DirFS("testdata/js")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, dashboard.Web); err != nil { // the embedded files, which may contain a fault
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestJS runs the tests of the page's scripts, in testdata/js, with node.
func TestJS(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "node", "--test", "--test-reporter=tap")
	cmd.Dir = jsDir(t)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("\n# fail 0\n")) || bytes.Contains(out, []byte("\n# pass 0\n")) {
		t.Errorf("%v:\n%s", err, out)
	}
}
