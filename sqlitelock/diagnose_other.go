//go:build !linux && !darwin

package sqlitelock

import (
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
)

func fileSystem(string) (string, error) {
	return "", fmt.Errorf("the type of a file system is %w on this system", driver.ErrUnsupported)
}
