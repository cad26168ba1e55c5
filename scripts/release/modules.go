package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// A module is one of ours that users get.
type module struct {
	path     string
	dir      string            // in the tree, with slashes; "." is the root
	requires map[string]string // versions of our other modules
}

// tag returns what Git calls a version of the module.
func (m module) tag(version string) string {
	if m.dir == "." {
		return version
	}
	return m.dir + "/" + version
}

// readModules returns the modules of go.work that users get, each after those that it
// requires. Examples and tests are not among them.
func readModules(tree string) (sorted []module, err error) {
	data, err := os.ReadFile(filepath.Join(tree, "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return nil, err
	}
	all := map[string]module{}
	for _, use := range work.Use {
		m, err := readModule(tree, filepath.ToSlash(filepath.Clean(use.Path)))
		if err != nil {
			return nil, err
		}
		if first, _, _ := strings.Cut(m.dir, "/"); first != "examples" && first != "systest" {
			all[m.path] = m
		}
	}
	var add func(path string)
	add = func(path string) {
		m, found := all[path]
		if !found || slices.ContainsFunc(sorted, func(s module) bool { return s.path == path }) {
			return
		}
		for _, required := range slices.Sorted(maps.Keys(m.requires)) {
			add(required)
		}
		sorted = append(sorted, m)
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		add(path)
	}
	return sorted, nil
}

func readModule(tree, dir string) (module, error) {
	name := filepath.Join(tree, dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return module{}, err
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return module{}, err
	}
	if len(mod.Replace) > 0 {
		return module{}, fmt.Errorf("%s has a replace: go install would refuse it", name)
	}
	m := module{mod.Module.Mod.Path, dir, map[string]string{}}
	for _, q := range mod.Require {
		if isOurs(q.Mod.Path) {
			m.requires[q.Mod.Path] = q.Mod.Version
		}
	}
	return m, nil
}

func isOurs(path string) bool { return path == ours || strings.HasPrefix(path, ours+"/") }

// requireVersion has all modules of a tree require each other in a version, and the
// workspaces find it in the tree.
func requireVersion(tree, version string, files []string) error {
	for _, name := range files {
		path := filepath.Join(tree, name)
		old, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		edit := editMod
		if filepath.Base(path) == "go.work" {
			edit = editWork
		}
		text, err := edit(path, old, version)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // a source file
			return err
		}
	}
	return nil
}

func editMod(name string, old []byte, version string) ([]byte, error) {
	mod, err := modfile.Parse(name, old, nil)
	if err != nil {
		return nil, err
	}
	for _, q := range slices.Clone(mod.Require) {
		if isOurs(q.Mod.Path) {
			if err := mod.AddRequire(q.Mod.Path, version); err != nil {
				return nil, err
			}
		}
	}
	return mod.Format()
}

func editWork(name string, old []byte, version string) ([]byte, error) {
	work, err := modfile.ParseWork(name, old, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Clone(work.Replace) {
		if !isOurs(p.Old.Path) || p.Old.Version == version {
			continue
		}
		path, to := p.Old.Path, p.New.Path
		if err := work.DropReplace(path, p.Old.Version); err != nil {
			return nil, err
		}
		if err := work.AddReplace(path, version, to, ""); err != nil {
			return nil, err
		}
	}
	work.Cleanup()
	return modfile.Format(work.Syntax), nil
}
