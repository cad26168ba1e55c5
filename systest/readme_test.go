package systest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// The program in the README compiles, and does what it says on a real server.
func TestREADMEExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("README.md has no Go program")
	}
	if statements := bytes.Count(block[1][bytes.Index(block[1], []byte("func main")):], []byte("\n")); statements > 20 {
		t.Errorf("main has %d lines: an example must be short", statements)
	}
	const address = "redis://localhost:6379"
	if !bytes.Contains(block[1], []byte(address)) {
		t.Fatalf("the program does not open %s", address)
	}
	program := strings.ReplaceAll(string(block[1]), address, testsvc.Redis(t).URL)
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "run", file).CombinedOutput()
	if err != nil || !regexp.MustCompile(`^working under fencing token \d{16}\n$`).Match(out) {
		t.Errorf("go run: %v\n%s", err, out)
	}
}
