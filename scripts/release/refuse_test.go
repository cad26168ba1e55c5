package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// smallTree makes a repository like ours, with three modules, and a key beside it.
func smallTree(t *testing.T) *release {
	t.Helper()
	top := t.TempDir()
	r := &release{tree: filepath.Join(top, "tree"), version: "v0.1.0", key: filepath.Join(top, "key"), ci: func() error { return nil }, only: platforms}
	mod := func(path string, requires ...string) []byte {
		text := "module " + ours + path + "\n\ngo 1.26.0\n"
		for _, q := range requires {
			text += "\nrequire " + ours + q + " v0.1.0\n"
		}
		return []byte(text)
	}
	replace := "replace " + ours + " v0.1.0 => ./\nreplace " + ours + "/redislock v0.1.0 => ./redislock\n"
	files := []file{
		{name: ".gitignore", data: []byte("/dist/\n")},
		{name: "go.work", data: []byte("go 1.26.0\n\nuse (\n\t.\n\t./cmd/holdfast\n\t./redislock\n\t./examples\n)\n\n" + replace)},
		{name: "go.mod", data: mod("")},
		{name: "redislock/go.mod", data: mod("/redislock", "")},
		{name: "cmd/holdfast/go.mod", data: mod("/cmd/holdfast", "", "/redislock")},
		{name: "cmd/holdfast/main.go", data: []byte("package main\n\nfunc main() {}\n")},
		{name: "examples/go.mod", data: mod("/examples", "/redislock")},
		{name: "dashboard/web/vendor/VERSIONS", data: []byte("preact 11.2.0 dist/preact.mjs preact\n")},
		{name: "dashboard/web/vendor/LICENSE.preact", data: []byte("Permission is hereby granted, free of charge, to any person obtaining a copy\nof this software and associated documentation files")},
		{name: "CHANGELOG.md", data: []byte("# Changelog\n\n## Unreleased\n\n- Locks.\n")},
		{name: "README.md", data: []byte("# holdfast\n")},
	}
	for _, f := range files {
		put(t, filepath.Join(r.tree, f.name), string(f.data))
	}
	put(t, r.key, "a key")
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "")
	if err := r.writeThirdParty(); err != nil {
		t.Fatal(err)
	}
	r.must(t, "init", "--quiet", "--initial-branch", "main")
	r.must(t, "config", "user.name", "Ada")
	r.must(t, "config", "user.email", "ada@example.org")
	r.must(t, "config", "commit.gpgSign", "false")
	r.commitAll(t)
	return r
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil { //nolint:gosec // a test's
		t.Fatal(err)
	}
}

func (r *release) must(t *testing.T, args ...string) {
	t.Helper()
	output(t, exec.Command("git", append([]string{"-C", r.tree}, args...)...))
}

func (r *release) commitAll(t *testing.T) {
	t.Helper()
	r.must(t, "add", "--all")
	r.must(t, "commit", "--quiet", "--allow-empty", "-m", "change")
}

// replaceIn changes a file of the tree and commits that.
func (r *release) replaceIn(t *testing.T, name, old, now string) {
	t.Helper()
	path := filepath.Join(r.tree, name)
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q: %v", name, old, err)
	}
	put(t, path, strings.Replace(string(text), old, now, 1))
	r.commitAll(t)
}

// snapshot returns a sum of all that the tree has, the repository included, but for
// Git's own index.
func (r *release) snapshot(t *testing.T) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(r.tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "index" {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d %s\n", path, len(text), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(h.Sum(nil))
}

// TestRefused: what must not become a version is refused, with a reason, before anything
// is written.
func TestRefused(t *testing.T) {
	tests := map[string]struct {
		spoil func(r *release)
		want  string
	}{
		"a tag that exists":       {func(r *release) { r.must(t, "tag", "v0.1.0") }, "the tag v0.1.0 exists"},
		"a module's tag":          {func(r *release) { r.must(t, "tag", "redislock/v0.1.0") }, "the tag redislock/v0.1.0 exists"},
		"an older version":        {func(r *release) { r.must(t, "tag", "v0.2.0") }, "v0.1.0 is not later than v0.2.0"},
		"no version":              {func(r *release) { r.version = "" }, `"" is not a version`},
		"a version without v":     {func(r *release) { r.version = "0.1.0" }, `"0.1.0" is not a version`},
		"half a version":          {func(r *release) { r.version = "v0.1" }, `"v0.1" is not a version`},
		"a build":                 {func(r *release) { r.version = "v0.1.0+linux" }, `is not a version`},
		"a path":                  {func(r *release) { r.version = "v0.1.0/../../x" }, `is not a version`},
		"version 2":               {func(r *release) { r.version = "v2.0.0" }, "have no /v2"},
		"a file that is new":      {func(r *release) { put(t, filepath.Join(r.tree, "x"), "x") }, "not committed:\n?? x"},
		"a file that has changed": {func(r *release) { put(t, filepath.Join(r.tree, "README.md"), "x") }, "not committed:\nM README.md"},
		"nothing new":             {func(r *release) { r.replaceIn(t, "CHANGELOG.md", "- Locks.\n", "") }, "nothing under Unreleased"},
		"no section":              {func(r *release) { r.replaceIn(t, "CHANGELOG.md", "## Unreleased", "## v0.0.1") }, `no heading "## Unreleased"`},
		"a README that knows not": {func(r *release) { r.replaceIn(t, "README.md", "# holdfast", "It is not published yet.") }, "change its status first"},
		"an older requirement":    {func(r *release) { r.version = "v0.3.0"; r.must(t, "tag", "v0.2.0") }, "requires github.com/holdfast-locks/holdfast v0.1.0: want v0.2.0 or v0.3.0"},
		"another requirement":     {func(r *release) { r.version = "v0.0.9" }, "v0.1.0: want v0.0.9"},
		"a replace":               {func(r *release) { r.replaceIn(t, "redislock/go.mod", "go 1.26.0", "go 1.26.0\n\nreplace a.b/c => ./c") }, "has a replace"},
		"no key":                  {func(r *release) { r.key = "" }, "give --key FILE"},
		"a key that is not there": {func(r *release) { r.key += "s" }, "the key: "},
		"a key in the tree":       {func(r *release) { r.key = filepath.Join(r.tree, ".git", "config") }, "is in the tree"},
		"an unknown licence": {func(r *release) {
			r.replaceIn(t, "dashboard/web/vendor/LICENSE.preact", "free of charge", "for 5 pounds")
		}, "nobody has looked at this licence"},
		"a library that is new":    {func(r *release) { r.replaceIn(t, "dashboard/web/vendor/VERSIONS", "11.2.0", "12.0.0") }, "make third-party"},
		"a library without one":    {func(r *release) { r.replaceIn(t, "dashboard/web/vendor/VERSIONS", "preact 11", "uplot 11") }, "no licence of uplot"},
		"a red make ci":            {func(r *release) { r.ci = func() error { return errors.New("exit status 2") } }, "make ci: exit status 2"},
		"a rebuild without a tag":  {func(r *release) { r.rebuild = true }, "there is no tag v0.1.0"},
		"a tree that is not there": {func(r *release) { r.tree += "s" }, "go.work"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := smallTree(t)
			tree := r.tree
			tt.spoil(r)
			given := &release{tree: tree}
			before := given.snapshot(t)
			err := r.run()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if given.snapshot(t) != before {
				t.Error("it has written something")
			}
		})
	}
}

// TestCommitAndTags: all modules are tagged at one commit, the root first, and require
// each other in the version; what was unreleased is the version's; the branch has moved
// on, and nothing else has.
func TestCommitAndTags(t *testing.T) {
	r := smallTree(t)
	r.must(t, "tag", "v0.1.0")
	r.replaceIn(t, "CHANGELOG.md", "- Locks.", "- More locks.")
	r.version, r.work = "v0.2.0", t.TempDir()
	before := r.git("rev-parse", "HEAD")
	if err := errors.Join(r.check(), r.prepare(), r.pack(), r.publish()); err != nil {
		t.Fatal(err)
	}
	if got := r.git("rev-parse", "HEAD~1"); got != before || r.git("status", "--porcelain") != "" {
		t.Errorf("one commit after %s: %s %s", before, got, r.git("status", "--porcelain"))
	}
	if got := r.git("tag", "--points-at", "HEAD"); got != "cmd/holdfast/v0.2.0\nredislock/v0.2.0\nv0.2.0" {
		t.Errorf("the tags are %s", got)
	}
	var order []string
	for _, m := range r.modules {
		order = append(order, m.tag(r.version))
	}
	if got := strings.Join(order, " "); got != "v0.2.0 redislock/v0.2.0 cmd/holdfast/v0.2.0" {
		t.Errorf("the order is %s", got)
	}
	for _, dir := range []string{"redislock", "cmd/holdfast", "examples"} {
		m, err := readModule(r.tree, dir)
		if err != nil || len(m.requires) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for path, v := range m.requires {
			if v != "v0.2.0" {
				t.Errorf("%s requires %s %s", dir, path, v)
			}
		}
	}
	if out := output(t, exec.Command("go", "-C", r.tree, "list", "-deps", "./cmd/holdfast")); !strings.Contains(out, ours+"/cmd/holdfast") {
		t.Errorf("the workspace has %s", out)
	}
	if got, err := notesOf(r.tree, "v0.2.0"); err != nil || got != "- More locks." {
		t.Errorf("the notes are %q, %v", got, err)
	}
	if err := r.check(); err == nil || !strings.Contains(err.Error(), "the tag cmd/holdfast/v0.2.0 exists") {
		t.Errorf("again: %v", err)
	}
}
