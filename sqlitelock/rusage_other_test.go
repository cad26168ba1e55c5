//go:build !unix

package sqlitelock

import (
	"errors"
	"time"
)

func processorTime() (time.Duration, error) { return 0, errors.ErrUnsupported }
