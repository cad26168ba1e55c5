package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples: each rule finds its bad examples and leaves the good ones alone,
// in each kind of text, in one line and in two.
func TestExamples(t *testing.T) {
	for _, r := range theRules(t) {
		if len(r.bad) == 0 || r.say == "" {
			t.Errorf("%s has no bad example, or does not say what to write instead", r.never)
		}
		for _, text := range r.bad {
			for file, source := range written(text, r.kind) {
				all := check(theRules(t), file, []byte(source))
				if len(all) != 1 || all[0].line < 3 || all[0].say != r.say {
					t.Errorf("in %s found %q:\n%s", file, all, source)
				}
			}
		}
		for _, text := range r.good {
			for file, source := range written(text, "never") {
				if all := check(theRules(t), file, []byte(source)); len(all) > 0 {
					t.Errorf("in %s found %q:\n%s", file, all, source)
				}
			}
		}
	}
}

// written returns files that have a text in their third line, and perhaps on,
// or as a name in the third line.
func written(text, kind string) map[string]string {
	if kind == "name" {
		return map[string]string{"a.go": "package p\n\nvar " + text + " int\n", "a.lua": "\n\nlocal " + text}
	}
	lines := strings.ReplaceAll(text, " ", "\n")
	return map[string]string{
		"a.md":        "# Title\n\n" + text + "\n",
		"table.md":    "\n\n| " + text + " | x |",
		"lines.md":    "First.\n\n" + lines,
		"a.go":        "package p\n\n// X: see y. " + text + "\nvar x int\n",
		"lines.go":    "package p\n\n// " + strings.ReplaceAll(lines, "\n", "\n// ") + "\nvar x int\n",
		"string.go":   "package p\n\nvar x = \"" + text + "\"\n",
		"a.lua":       "x = 1\n\nx = 2 -- " + text,
		"lines.sql":   "\n\n-- " + strings.ReplaceAll(lines, "\n", "\n-- ") + "\nSELECT 1",
		"scripts.txt": "exec x\n\n# " + text,
	}
}

// TestTree plants a bad sentence in a tree.
func TestTree(t *testing.T) {
	dir := t.TempDir()
	for _, at := range []string{"deep/a.md", "deep/.hidden/a.md", ".a.md", "deep/a.bin"} {
		at = filepath.Join(dir, at)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(theRules(t)[0].bad[0]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := checkTree(dir); err != nil || len(all) != 1 || !strings.HasSuffix(all[0].file, "deep/a.md") {
		t.Errorf("found %q, %v", all, err)
	}
}

func TestBadRules(t *testing.T) {
	for _, text := range []string{"say early", "never (", "maybe x", "never a\nfine (", "never a\nmaybe x"} {
		if rules, err := parseRules([]byte(text)); err == nil {
			t.Errorf("%q: %v", text, rules)
		}
	}
}

func theRules(t *testing.T) []rule {
	t.Helper()
	rules, err := parseRules(rulesText)
	if err != nil || len(rules) < 15 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	return rules
}
