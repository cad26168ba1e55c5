package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/cli"
)

// TestManualPages: there is a page for every command, which groff takes without a
// warning.
func TestManualPages(t *testing.T) {
	if _, err := exec.LookPath("groff"); err != nil {
		t.Fatal("groff is needed: apt-get install groff-base, or brew install groff")
	}
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
