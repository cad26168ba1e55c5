//go:build !unix

package store

import "io/fs"

// Files have no modes here that say who may read and write them: whoever names a
// file answers for that.

const dontWait = 0

func checkOwner(string, fs.FileInfo) error   { return nil }
func checkWriters(string, fs.FileInfo) error { return nil }
func checkReaders(string, fs.FileInfo) error { return nil }
