//go:build !unix

package sqlitelock

import (
	"io/fs"
	"os"
)

// There is no boot-time clock here, so that no database is opened.

const noFollow = 0

func links(fs.FileInfo) uint64 { return 1 }

func ownerOf(fs.FileInfo) int { return os.Geteuid() }

func groupOf(fs.FileInfo) int { return os.Getegid() }

func inodeOf(fs.FileInfo) uint64 { return 0 }
