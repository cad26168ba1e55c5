package systest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/codeblock"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// The program in the README, copied as it is, works on a real server, and what is to be
// copied is short.
func TestREADMEExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, _ := codeblock.Find("README.md", string(readme))
	var program string
	for _, b := range blocks {
		if b.Kind == "go" && program == "" {
			program = b.Text
		}
	}
	_, function, found := strings.Cut(program, "\nfunc nightly(")
	if lines := strings.Count(function, "\n"); !found || lines > 16 {
		t.Errorf("the function nightly has %d lines, want 16 at most", lines)
	}
	const address = "redis://localhost:6379"
	if !strings.Contains(program, address) {
		t.Fatalf("the program does not open %s", address)
	}
	program = strings.ReplaceAll(program, address, testsvc.Redis(t).URL)
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "run", file).CombinedOutput()
	if err != nil || !regexp.MustCompile(`^alone, .* token \d{16}\n$`).Match(out) {
		t.Errorf("go run: %v\n%s", err, out)
	}
}
