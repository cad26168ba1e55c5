package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// thirdParty lists the code of others in the program: a page with a table, and a file with
// the texts of their licences.
var thirdParty = []string{"cmd/holdfast/THIRD_PARTY.md", "cmd/holdfast/THIRD_PARTY.txt"}

// known are phrases that only one licence has, in text whose spaces are single.
var known = []struct{ id, phrase string }{
	{"Apache-2.0", "Apache License Version 2.0, January 2004"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"BSD-3-Clause", "Neither the name of"},
	{"BSD-3-Clause", "Neither the names of"},
	{"BSD-3-Clause", "neither the names of"},
	{"BSD-2-Clause", "Redistribution and use in source and binary forms, with or without modification, are permitted provided that the following conditions are met"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"},
}

// licenceOf returns the SPDX identifier of a licence.
func licenceOf(text []byte) (string, error) {
	plain := strings.Join(strings.Fields(string(text)), " ")
	for _, k := range known {
		if strings.Contains(plain, k.phrase) {
			return k.id, nil
		}
	}
	return "", errors.New("nobody has looked at this licence yet: add it to licences.go if a program may contain such code")
}

// A notice is a text that those who pass a program on have to pass on, too.
type notice struct {
	of   string // module and version
	name string // of the file in the module
	text []byte
}

var isNotice = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright)([-.].*)?$`)

// isLicence finds what is a module's own licence, and not a list of others'.
var isLicence = regexp.MustCompile(`(?i)^(licen[cs]e|copying)(\.(txt|md))?$`)

// linked returns the notices of the modules that the command links on any platform.
func linked(tree string) (all []notice, err error) {
	dirs := map[string]string{} // directories with packages, and their modules
	for _, p := range platforms {
		cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}|{{.Dir}}|{{$.Dir}}{{end}}", "./cmd/holdfast")
		cmd.Dir = tree
		cmd.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", tree, err)
		}
		for line := range strings.Lines(string(out)) {
			if f := strings.Split(strings.TrimSpace(line), "|"); len(f) == 3 && !isOurs(strings.Fields(f[0])[0]) {
				dirs[f[1]], dirs[f[2]] = f[0], f[0]
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		found, err := noticesIn(dir, dirs[dir])
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func noticesIn(dir, of string) (all []notice, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() || !isNotice.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, notice{of, e.Name(), text})
	}
	return all, nil
}

// ofThePage returns the notices of the libraries that the dashboard brings.
func ofThePage(tree string) (all []notice, err error) {
	dir := filepath.Join(tree, "dashboard", "web", "vendor")
	versions, err := os.ReadFile(filepath.Join(dir, "VERSIONS"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(versions)) {
		f := strings.Fields(line)
		text, err := os.ReadFile(filepath.Join(dir, "LICENSE."+path.Base(f[0])))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("dashboard/web/vendor has no licence of %s", f[0])
		}
		if err != nil {
			return nil, err
		}
		if n := (notice{f[0] + " " + f[1], "LICENSE", text}); !slices.ContainsFunc(all, func(o notice) bool { return o.of == n.of }) {
			all = append(all, n)
		}
	}
	return all, nil
}

// pageOfThirdParty returns the page and the texts for a tree, or an error for a licence that
// is not known.
func pageOfThirdParty(tree string) (page, texts []byte, err error) {
	modules, err := linked(tree)
	if err != nil {
		return nil, nil, err
	}
	libraries, err := ofThePage(tree)
	if err != nil {
		return nil, nil, err
	}
	all := slices.Concat(modules, libraries)
	slices.SortStableFunc(all, func(a, b notice) int { return cmp.Compare(a.of, b.of) })
	if page, err = tableOf(all); err != nil {
		return nil, nil, err
	}
	return page, textsOf(all), nil
}

const introduction = `# Code of others

The program holdfast contains code of these modules and libraries, and of Go's standard library, which
has the licence of golang.org/x/sys. The image also has the certificate authorities that Mozilla
trusts, a list under the [MPL 2.0](https://mozilla.org/MPL/2.0/). [THIRD_PARTY.txt](THIRD_PARTY.txt)
has the texts of the licences. ` + "`make third-party`" + ` writes both.

| module | version | licence |
|---|---|---|
`

// tableOf writes the page.
func tableOf(all []notice) ([]byte, error) {
	ids := map[string][]string{}
	for _, n := range all {
		if ids[n.of] == nil {
			ids[n.of] = []string{}
		}
		if !isLicence.MatchString(n.name) {
			continue
		}
		id, err := licenceOf(n.text)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", n.of, n.name, err)
		}
		if !slices.Contains(ids[n.of], id) {
			ids[n.of] = append(ids[n.of], id)
		}
	}
	b := bytes.NewBufferString(introduction)
	for _, of := range slices.Sorted(maps.Keys(ids)) {
		if len(ids[of]) == 0 {
			return nil, fmt.Errorf("%s has no file with its licence", of)
		}
		name, version, _ := strings.Cut(of, " ")
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, version, strings.Join(ids[of], " AND "))
	}
	return b.Bytes(), nil
}

// textsOf writes each text once, below the names of all whose text it is.
func textsOf(all []notice) []byte {
	of := map[string][]string{}
	for _, n := range all {
		text := strings.Trim(string(bytes.ReplaceAll(n.text, []byte("\r"), nil)), "\n")
		if name, _, _ := strings.Cut(n.of, " "); !slices.Contains(of[text], name) {
			of[text] = append(of[text], name)
		}
	}
	byOwner := func(a, b string) int { return cmp.Or(slices.Compare(of[a], of[b]), cmp.Compare(a, b)) }
	var b bytes.Buffer
	line := strings.Repeat("=", 80)
	for _, text := range slices.SortedFunc(maps.Keys(of), byOwner) {
		fmt.Fprintf(&b, "%s\n%s\n%s\n\n%s\n\n", line, strings.Join(of[text], ", "), line, text)
	}
	return b.Bytes()
}

// checkThirdParty refuses a tree whose page is not about what the program links.
func (r *release) checkThirdParty() error {
	page, texts, err := pageOfThirdParty(r.tree)
	if err != nil {
		return err
	}
	for i, want := range [][]byte{page, texts} {
		got, err := os.ReadFile(filepath.Join(r.tree, thirdParty[i]))
		if err == nil && !bytes.Equal(got, want) {
			err = fmt.Errorf("%s is not about what the program links: write it anew with make third-party", thirdParty[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *release) writeThirdParty() error {
	page, texts, err := pageOfThirdParty(r.tree)
	if err != nil {
		return err
	}
	for i, text := range [][]byte{page, texts} {
		if err := os.WriteFile(filepath.Join(r.tree, thirdParty[i]), text, 0o644); err != nil { //nolint:gosec // a page of the documentation
			return err
		}
	}
	return nil
}

// readThirdParty returns the licences in the page's table, by "module version".
func readThirdParty(tree string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(tree, thirdParty[0]))
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\S+) \| (\S+) \| ([-.\w ]+) \|$`).FindAllStringSubmatch(string(text), -1) {
		all[m[1]+" "+m[2]] = m[3]
	}
	return all, nil
}
