//go:build !linux && !darwin

package onefile

import (
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
)

// FileSystem fails: the type is not known on this system.
func FileSystem(string) (string, error) {
	return "", fmt.Errorf("the type of a file system is %w on this system", driver.ErrUnsupported)
}
