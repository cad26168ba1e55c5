package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// signedAs is the namespace of the signatures: a signature of something else is not one
// of a version.
const signedAs = "holdfast-release"

// sumsName has the name of the file that is signed.
const sumsName = "SHA256SUMS"

// descriptions writes the formula and the manifest, which name files by their sums.
func (r *release) descriptions() error {
	sums := map[string]string{}
	for _, p := range r.only {
		ending := ".tar.gz"
		if p.os == "windows" {
			ending = ".zip"
		}
		data, err := os.ReadFile(filepath.Join(r.files, "holdfast_"+r.bare()+"_"+p.String()+ending))
		if err != nil {
			return err
		}
		sums[p.String()] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	at := "https://" + ours + "/releases/download/" + r.version + "/holdfast_" + r.bare() + "_"
	for _, name := range []string{"holdfast.rb", "holdfast.json"} {
		text, err := r.filled(name, r.values(map[string]any{"Sums": sums, "At": at}))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.files, name), text, 0o644); err != nil { //nolint:gosec // to be read by everybody
			return err
		}
	}
	text, err := os.ReadFile(filepath.Join(r.files, "holdfast.json"))
	if err == nil && !json.Valid(text) {
		err = errors.New("holdfast.json is not JSON")
	}
	return err
}

// notes writes what the forge shows of the version: its section of the changelog.
func (r *release) notes() error {
	text, err := notesOf(r.clone(), r.version)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.files, "RELEASE_NOTES.md"), []byte(text+"\n"), 0o644) //nolint:gosec // to be read by everybody
}

// sums writes the sums of all files, and signs them.
func (r *release) sums() error {
	files, err := readAll(r.files)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(f.data), f.name)
	}
	path := filepath.Join(r.files, sumsName)
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil { //nolint:gosec // to be read by everybody
		return err
	}
	fmt.Print(strings.ReplaceAll(b.String(), "  ", " "))
	if r.key == "" {
		fmt.Println("release: there is no signature, since there is no --key")
		return nil
	}
	return r.tool(r.files, "ssh-keygen", "-q", "-Y", "sign", "-f", r.key, "-n", signedAs, path)
}
