package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// archive writes a tar.gz, or a zip for Windows, of the program and the texts.
func (r *release) archive(b build, shared []file) error {
	top := "holdfast_" + r.bare() + "_" + b.String()
	files := slices.Concat(shared, []file{{b.program(), 0o755, b.data}})
	for i := range files {
		files[i].name = path.Join(top, files[i].name)
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	name := filepath.Join(r.files, top)
	if b.os == "windows" {
		return writeFile(name+".zip", func(w io.Writer) error { return writeZip(w, files, r.time) })
	}
	return writeFile(name+".tar.gz", func(w io.Writer) error {
		z, _ := gzip.NewWriterLevel(w, gzip.DefaultCompression) // the level exists
		if err := writeTar(z, files, r.time); err != nil {
			return err
		}
		return z.Close()
	})
}

func writeFile(name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644) //nolint:gosec // to be read by everybody
}

// writeTar writes files of root, all of one time. A name that ends with a slash is a
// directory.
func writeTar(w io.Writer, files []file, at time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: int64(cmpOr(f.mode)), Size: int64(len(f.data)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if f.name == imageHome {
			h.Uid, h.Gid = imageUser, imageUser
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	return t.Close()
}

func cmpOr(mode fs.FileMode) fs.FileMode {
	if mode == 0 {
		return 0o644
	}
	return mode
}

func writeZip(w io.Writer, files []file, at time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(cmpOr(f.mode))
		to, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := to.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}

// writeAll writes files below a directory, with the time of the version.
func writeAll(dir string, files []file, at time.Time) error {
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // as in a package
			return err
		}
		if err := os.WriteFile(name, f.data, cmpOr(f.mode)); err != nil {
			return err
		}
		if err := os.Chmod(name, cmpOr(f.mode)); err != nil { // whatever the umask
			return err
		}
	}
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(name, 0o755) //nolint:gosec // as in a package
		}
		if err != nil {
			return err
		}
		return os.Chtimes(name, at, at)
	})
}
