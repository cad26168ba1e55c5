//go:build !unix

package onefile

import (
	"io/fs"
	"os"
)

// Without a boot-time clock Open fails on these systems before any of this is used.

const noFollow = 0

func links(fs.FileInfo) uint64 { return 1 }

func OwnerOf(fs.FileInfo) int { return os.Geteuid() }

func GroupOf(fs.FileInfo) int { return os.Getegid() }

func InodeOf(fs.FileInfo) uint64 { return 0 }
