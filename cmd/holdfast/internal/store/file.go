package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/storeurl"
)

// maxFile is more bytes than any file that names a store has.
const maxFile = 64 << 10

// A file is a file that names a store.
type file struct {
	path string
	text string
	info fs.FileInfo
}

// read returns a file that only root and this user can have written: its writer chooses the
// store, and so which clients the locks exclude. A link must belong to root or this user as well.
func read(path string) (*file, error) {
	link, err := os.Lstat(path)
	if isAbsent(err) {
		return nil, fmt.Errorf("%w store: %w", driver.ErrInvalid, err)
	}
	if err == nil && link.Mode()&fs.ModeSymlink != 0 {
		if err := checkOwner(path, link); err != nil {
			return nil, err
		}
	}
	opened, err := os.OpenFile(path, os.O_RDONLY|dontWait, 0)
	switch {
	case isAbsent(err): // a dangling link is meant to name a store
		return nil, fmt.Errorf("%w store: %s is a link to nothing", driver.ErrInvalid, path)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: you may not read %s, so it is not known which store it names: "+
			"have its owner let you read it, or name a store with --store", driver.ErrPermission, path)
	case err != nil:
		return nil, fmt.Errorf("%w store: %w", driver.ErrInvalid, err)
	}
	defer opened.Close()
	f := &file{path: path}
	if f.info, err = opened.Stat(); err != nil { // of the open file: by now the name may refer to another one
		return nil, fmt.Errorf("%w store: %w", driver.ErrInvalid, err)
	}
	if !f.info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w store: %s is not a regular file", driver.ErrInvalid, path)
	}
	if err := cmp.Or(checkOwner(path, f.info), checkWriters(path, f.info)); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(opened, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("%w store: %w", driver.ErrInvalid, err)
	}
	f.text = string(data)
	return f, nil
}

// checkSecret refuses a URL with credentials in a file that others may read.
func (f *file) checkSecret(rawURL string) error {
	if !storeurl.HasCredentials(rawURL) {
		return nil
	}
	return checkReaders(f.path, f.info)
}
