package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBudgets(t *testing.T) {
	if n := len(parseBudgets(budgetsText)); n < 15 {
		t.Errorf("%d budgets: is the file read?", n)
	}
	for file, c := range map[string]struct {
		text string
		want int
	}{
		"a.md":               {"Whoever asks is told.", 3},
		"code.md":            {"```\nWhoever asks is told.\n```", 0},
		"a.go":               {"package p\n\n// Whoever is\n// told.\nvar nobody int", 2},
		"string.go":          {"package p\n\nvar x = \"it is nobody\"", 1},
		"a_test.go":          {"package p\n\n// Whoever.\n", 0},
		"CHANGELOG.md":       {"Whoever.", 0},
		"docs/adr/0001-a.md": {"Whoever.", 0},
	} {
		dir := t.TempDir()
		at := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := overBudget(dir); len(got) != c.want {
			t.Errorf("%s: %q", file, got)
		}
	}
}
