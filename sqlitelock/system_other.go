//go:build !unix

package sqlitelock

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
)

// MakeSystem is for unix.
func MakeSystem(context.Context, string, int) (made bool, err error) {
	return false, fmt.Errorf("%w: a system store: it needs unix", driver.ErrUnsupported)
}
