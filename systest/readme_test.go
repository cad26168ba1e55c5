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

// TestREADMEExample checks that the programs in the README work: one without a server, and one on
// go-redis. It also checks that the first program is short.
func TestREADMEExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, _ := codeblock.Find("README.md", string(readme))
	var programs []string
	for _, b := range blocks {
		if b.Kind == "go" && strings.HasPrefix(b.Text, "package main\n") {
			programs = append(programs, b.Text)
		}
	}
	if len(programs) != 2 || !strings.Contains(programs[0], "stores.Dial(") || !strings.Contains(programs[1], "goredislock.New(") {
		t.Fatalf("%d programs, want one with stores.Dial and one with goredislock.New", len(programs))
	}
	if n := len(regexp.MustCompile(`(?m)^.+$`).FindAllString(programs[0], -1)); n > 20 {
		t.Errorf("the program has %d lines with text, want 20 at most", n)
	}
	server := testsvc.Redis(t)
	for _, program := range programs {
		program = strings.Replace(program, `redis.Options{Addr: "localhost:6379"}`, `redis.Options{Addr: "`+server.Addr+`"}`, 1)
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("go", "run", file).CombinedOutput()
		if err != nil || !regexp.MustCompile(`alone, .* token \d{16}\n.*done: <nil>\n$`).Match(out) {
			t.Errorf("go run: %v\n%s\n%s", err, out, program)
		}
	}
}
