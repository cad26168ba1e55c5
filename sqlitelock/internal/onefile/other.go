//go:build !linux && !darwin

package onefile

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/holdfast-locks/holdfast/driver"
)

// Without a boot-time clock Open fails on these systems before it uses any of this.

const noFollow = 0

func links(fs.FileInfo) uint64 { return 1 }

func OwnerOf(fs.FileInfo) int { return os.Geteuid() }

func GroupOf(fs.FileInfo) int { return os.Getegid() }

func InodeOf(fs.FileInfo) uint64 { return 0 }

func MayUse(string) error { return nil }

func FileSystem(string) (string, error) { return "", driver.ErrUnsupported }

func (*Maker) run(context.Context) (made bool, err error) {
	return false, fmt.Errorf("%w: a system store: it needs Linux or macOS", driver.ErrUnsupported)
}
