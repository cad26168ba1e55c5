//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package show

import (
	"errors"
	"os"
)

// Keys is not supported here.
func Keys(*os.File) (restore func(), err error) { return nil, errors.ErrUnsupported }
