package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A platform is a system and a processor.
type platform struct{ os, arch string }

// platforms are those that a version has binaries for.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"}, {"freebsd", "amd64"}, {"freebsd", "arm64"},
}

func (p platform) String() string { return p.os + "_" + p.arch }

// program returns what the command is called there.
func (p platform) program() string {
	if p.os == "windows" {
		return "holdfast.exe"
	}
	return "holdfast"
}

// A file is one of an archive, a package or an image. Modes are 0644 unless it has one.
type file struct {
	name string // with slashes
	mode fs.FileMode
	data []byte
}

// A build is the command for one platform.
type build struct {
	platform

	path string // of the program
	data []byte
}

// makeFiles makes what people install, in the directory r.files.
func (r *release) makeFiles() error {
	r.files = filepath.Join(r.work, "files")
	if err := os.Mkdir(r.files, 0o755); err != nil { //nolint:gosec // to be read by everybody
		return err
	}
	shared, err := r.texts()
	if err != nil {
		return err
	}
	var builds []build
	for _, p := range r.only {
		b, err := r.build(p)
		if err != nil {
			return err
		}
		builds = append(builds, b)
		if err := errors.Join(r.archive(b, shared), r.sbom(b)); err != nil {
			return err
		}
		if p.os != "linux" {
			continue
		}
		if err := errors.Join(r.deb(b, shared), r.rpm(b, shared)); err != nil {
			return err
		}
	}
	return errors.Join(r.image(builds), r.descriptions(), r.notes(), r.sums())
}

// bare returns the version without the v.
func (r *release) bare() string { return strings.TrimPrefix(r.version, "v") }

// build makes the command from the tags' packages. Its own module is the clone, so that
// the go command notes the version and the commit; go.mod and go.sum are copies, since the
// sums of our modules are added to them.
func (r *release) build(p platform) (b build, err error) {
	b = build{platform: p, path: filepath.Join(r.work, "build", p.String(), p.program())}
	if _, err := r.inCommand([]string{"GOOS=" + p.os, "GOARCH=" + p.arch}, "build", "-ldflags=-s -w -buildid=", "-buildvcs=true", "-o", b.path, "."); err != nil {
		return b, err
	}
	b.data, err = os.ReadFile(b.path)
	return b, err
}

// inCommand runs a part of the go command in the command's module.
func (r *release) inCommand(env []string, verb string, args ...string) ([]byte, error) {
	dir := filepath.Join(r.clone(), "cmd", "holdfast")
	mods := filepath.Join(r.work, "mods")
	if err := os.MkdirAll(mods, 0o700); err != nil {
		return nil, err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(mods, name), text, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	return r.goCommand(dir, env, append([]string{verb, "-modfile=" + filepath.Join(mods, "go.mod")}, args...)...)
}

// texts returns the files that all archives have: the licences, the manual and the
// completions. They are named as in an archive.
func (r *release) texts() (all []file, err error) {
	for _, name := range append([]string{"LICENSE", "README.md", "CHANGELOG.md"}, thirdParty...) {
		data, err := os.ReadFile(filepath.Join(r.clone(), name))
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: filepath.Base(name), data: data})
	}
	man := filepath.Join(r.work, "man")
	if _, err := r.inCommand(nil, "run", "./internal/manual", "-man", man); err != nil {
		return nil, err
	}
	pages, err := filepath.Glob(filepath.Join(man, "*.1"))
	if err != nil || len(pages) < 10 {
		return nil, fmt.Errorf("%d pages of the manual, %w", len(pages), err)
	}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: "man/" + filepath.Base(page), data: data})
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		data, err := exec.Command(r.installed(), "completion", shell).Output()
		if err != nil || len(data) < 100 {
			return nil, fmt.Errorf("holdfast completion %s: %d bytes, %w", shell, len(data), err)
		}
		all = append(all, file{name: "completions/holdfast." + shell, data: data})
	}
	return all, nil
}

// named returns the data of a file.
func named(files []file, name string) []byte {
	i := slices.IndexFunc(files, func(f file) bool { return f.name == name })
	return files[i].data // all of them are ours
}

// zipped compresses without a time and a name, as Debian wants it.
func zipped(data []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level exists
	_, _ = w.Write(data)                                  // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}
