package archtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadme builds the Go example of README.md, as a package of the module
// examples that only the go command sees.
func TestReadme(t *testing.T) {
	_, code, found := strings.Cut(read(t, "README.md"), "\n```go\n")
	code, _, _ = strings.Cut(code, "\n```\n")
	if !found {
		t.Fatal("README.md has no Go example")
	}
	source := filepath.Join(t.TempDir(), "readme.go")
	write(t, source, `package readme

import (
	"context"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/redislock"
)

func writeReport(context.Context, uint64) error { return nil }

var _ = nightly

`+code)
	examples, err := filepath.Abs(tree + "/examples")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{filepath.Join(examples, "readme", "readme.go"): source}
	overlay, err := json.Marshal(map[string]any{"Replace": seen})
	if err != nil {
		t.Fatal(err)
	}
	write(t, source+".json", string(overlay))
	cmd := exec.Command("go", "build", "-overlay", source+".json", "./readme")
	cmd.Dir = examples
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the Go example of README.md: %v\n%s", err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
