package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestPage checks that docs/reference/cli.md is what --help prints.
func TestPage(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "reference", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	writeMarkdown(&got)
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("docs/reference/cli.md is not what --help prints: write it anew with make manual")
	}
}

// TestExamples checks that the help of every command has at least two examples, and a summary
// without a full stop.
func TestExamples(t *testing.T) {
	example := regexp.MustCompile(`(?m)^  (\S.*)?\bholdfast\b`)
	each(cli.Tree(), func(c *cobra.Command) {
		if n := len(example.FindAllString(c.Example, -1)); n < 2 && c.Name() != "help" {
			t.Errorf("%s --help has %d examples, want two", c.CommandPath(), n)
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: Short %q: want one line without a full stop", c.CommandPath(), c.Short)
		}
	})
}

// TestManualPages checks that every command has a page that groff formats without a warning.
func TestManualPages(t *testing.T) {
	testsvc.Need(t, "groff", "groff-base", "groff")
	dir := t.TempDir()
	if err := writeMan(dir); err != nil {
		t.Fatal(err)
	}
	each(cli.Tree(), func(c *cobra.Command) {
		page := filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		out, err := exec.Command("groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-z", page).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v %s", filepath.Base(page), err, out)
		}
	})
}
