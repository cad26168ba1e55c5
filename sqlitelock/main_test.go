package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// TestMain runs the tests, or childMain in a child process: see spawn.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArg {
		if err := childMain(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	drivertest.ExitWithoutLeaks(m, []string{"/holdfast/", "modernc.org/", "/fsnotify"})
}

// open returns an engine that is closed at the end of the test.
func open(t testing.TB, path string) *Engine {
	t.Helper()
	return drivertest.Open(t, func(ctx context.Context, path string) (*Engine, error) { return Open(ctx, path, nil) }, path)
}

// openNew returns an engine on a new database.
func openNew(t testing.TB) *Engine {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "locks.db"))
}

// wantIs fails t unless err wraps want, or is nil if want is.
func wantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}
