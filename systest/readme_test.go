package systest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// program makes the function in the README a program.
const program = `package main

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/redislock"
)

func writeReport(_ context.Context, token uint64) error {
	_, err := fmt.Println("token", token)
	return err
}

func main() {
	if err := nightly(context.Background()); err != nil {
		log.Fatal(err)
	}
}

`

// The example in the README compiles, and works on a real server.
func TestREADMEExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("README.md has no Go code")
	}
	example := string(block[1])
	if lines := strings.Count(example, "\n"); lines > 15 {
		t.Errorf("the example has %d lines, want 15 at most", lines)
	}
	const address = "redis://localhost:6379"
	if !strings.Contains(example, address) {
		t.Fatalf("the example does not open %s", address)
	}
	example = strings.ReplaceAll(example, address, testsvc.Redis(t).URL)
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program+example), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "run", file).CombinedOutput()
	if err != nil || !regexp.MustCompile(`^token \d{16}\n$`).Match(out) {
		t.Errorf("go run: %v\n%s", err, out)
	}
}
