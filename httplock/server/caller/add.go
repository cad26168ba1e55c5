package caller

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/strict"
)

// Add draws a token, adds an entry for it to a file of callers, and returns the token,
// which is not kept anywhere. If there is no such file, it makes one that only its owner
// can read. Servers that have the file open know the caller within a second.
//
// Two tokens of the same name are one caller. To change a token, add a new one, and remove the
// old entry when no program uses it any more.
func Add(path string, c Caller) (token string, err error) {
	doc := document{}
	text, _, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", err
	default:
		if err := strict.Unmarshal(text, &doc); err != nil {
			return "", err
		}
	}
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	token = base64.RawURLEncoding.EncodeToString(secret)
	digest := sha256.Sum256([]byte(token))
	e := entry{grant: grant{Name: c.Name, Prefixes: c.Prefixes, Rights: c.Rights.names()}, SHA256: hex.EncodeToString(digest[:])}
	if c.Prefixes == nil {
		e.Prefixes = []string{""}
	}
	if _, err := e.caller(); err != nil {
		return "", err
	}
	doc.Callers = append(doc.Callers, e)
	if text, err = json.MarshalIndent(doc, "", "  "); err != nil {
		return "", err
	}
	return token, replace(path, append(text, '\n'))
}

// replace replaces the content of a file with text in one step.
func replace(path string, text []byte) error {
	mode := fs.FileMode(0o600)
	old, err := os.Stat(path)
	if err == nil {
		mode = old.Mode().Perm()
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".callers-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // fails after the rename
	_, err = file.Write(text)
	if err = errors.Join(err, keepGroup(file, old), file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
