package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

// check refuses what must not become a version.
func (r *release) check() error {
	all, err := readModules(r.tree)
	if err != nil {
		return err
	}
	if r.version == "" && r.dry {
		r.version = next(all, r.latest())
	}
	for _, check := range []func() error{
		r.checkVersion,
		r.checkTree,
		r.checkKey,
		func() error { return r.checkRequired(all) },
		r.checkTexts,
		r.checkThirdParty,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	if r.dry || r.rebuild {
		return nil // a trial is a part of make release
	}
	if err := r.ci(); err != nil {
		return fmt.Errorf("make ci: %w", err)
	}
	return nil
}

// next returns the version to try: what the modules require, or if that exists its
// successor.
func next(all []module, latest string) string {
	version := "v0.1.0"
	for _, m := range all {
		for _, v := range m.requires {
			version = v
		}
	}
	if latest != "" && semver.Compare(version, latest) <= 0 {
		var major, minor int
		_, _ = fmt.Sscanf(latest, "v%d.%d", &major, &minor) // it is a version
		version = fmt.Sprintf("v%d.%d.0", major, minor+1)
	}
	return version
}

func (r *release) checkVersion() error {
	v := r.version
	switch {
	case !semver.IsValid(v) || semver.Canonical(v) != v || v != filepath.Base(v):
		return fmt.Errorf("%q is not a version: give one such as v0.1.0", v)
	case semver.Compare(semver.Major(v), "v1") > 0:
		return fmt.Errorf("%s: the paths of the modules have no /%s", v, semver.Major(v))
	}
	existing := r.git("tag", "--list", v, "*/"+v)
	if (existing != "") != r.rebuild {
		if r.rebuild {
			return fmt.Errorf("there is no tag %s", v)
		}
		return fmt.Errorf("the tag %s exists: give the next version", strings.Fields(existing)[0])
	}
	if last := r.latest(); !r.rebuild && last != "" && semver.Compare(v, last) <= 0 {
		return fmt.Errorf("%s is not later than %s", v, last)
	}
	return nil
}

// latest returns the greatest version that has a tag, or "".
func (r *release) latest() (latest string) {
	for v := range strings.FieldsSeq(r.git("tag", "--list", "v*")) {
		if semver.IsValid(v) && (latest == "" || semver.Compare(v, latest) > 0) {
			latest = v
		}
	}
	return latest
}

func (r *release) checkTree() error {
	if changed := r.git("status", "--porcelain"); changed != "" {
		return fmt.Errorf("the tree has changes that are not committed:\n%s", changed)
	}
	return nil
}

// checkKey wants a key for a version. The tree must not have it.
func (r *release) checkKey() error {
	if r.key == "" {
		if r.dry || r.rebuild {
			return nil
		}
		return errors.New("a version is signed: give --key FILE, a private key that ssh-keygen has made")
	}
	path, err := filepath.Abs(r.key)
	if err != nil {
		return err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return fmt.Errorf("the key: %w", err)
	}
	tree, err := filepath.EvalSymlinks(r.tree)
	if err != nil {
		return err
	}
	if inside, err := filepath.Rel(tree, path); err == nil && filepath.IsLocal(inside) {
		return fmt.Errorf("the key %s is in the tree: keep it elsewhere", path)
	}
	r.key = path
	return nil
}

// checkRequired refuses a module that requires something else of ours than the latest
// version, or the one to be made: what its tests ran with would not be what users get.
func (r *release) checkRequired(all []module) error {
	latest := r.latest()
	for _, m := range all {
		for path, v := range m.requires {
			if v != r.version && v != latest {
				return fmt.Errorf("%s requires %s %s: want %s", m.path, path, v, strings.Join(strings.Fields(latest+" "+r.version), " or "))
			}
		}
	}
	return nil
}

const unpublished = "not published yet"

// checkTexts wants something in the changelog, and a README that knows of the version.
func (r *release) checkTexts() error {
	notes, err := notesOf(r.tree, "Unreleased")
	if err == nil && notes == "" && !r.rebuild {
		err = errors.New("CHANGELOG.md has nothing under Unreleased: write what is new")
	}
	if err != nil || r.dry || r.rebuild {
		return err
	}
	readme, err := os.ReadFile(filepath.Join(r.tree, "README.md"))
	if err == nil && strings.Contains(string(readme), unpublished) {
		err = fmt.Errorf("README.md still has the words %q: change its status first", unpublished)
	}
	return err
}

// notesOf returns what the changelog of a tree has under a heading.
func notesOf(tree, heading string) (string, error) {
	text, err := os.ReadFile(filepath.Join(tree, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	section := regexp.MustCompile(`(?ms)^## ` + regexp.QuoteMeta(heading) + `( - [-\d]+)?\n(.*?)(^## |\z)`)
	m := section.FindStringSubmatch(string(text))
	if m == nil {
		return "", fmt.Errorf("CHANGELOG.md has no heading %q", "## "+heading)
	}
	return strings.TrimSpace(m[2]), nil
}
