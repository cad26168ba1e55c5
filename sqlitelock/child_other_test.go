//go:build !unix

package sqlitelock

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

func processorTime() (time.Duration, error) { return 0, errors.ErrUnsupported }

func makeAndDie(_, _, _ string) error { return errors.ErrUnsupported }

func programFor(testing.TB, *syscall.SysProcAttr) string { return os.Args[0] }
