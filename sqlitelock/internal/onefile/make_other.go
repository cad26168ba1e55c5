//go:build !unix

package onefile

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Maker makes one system store, on unix.
type Maker struct {
	Path           string
	Group          int
	Create, Verify func(ctx context.Context, path string) error
	Step           func()
}

// Run fails.
func (*Maker) Run(context.Context) (made bool, err error) {
	return false, fmt.Errorf("%w: a system store: it needs unix", driver.ErrUnsupported)
}
