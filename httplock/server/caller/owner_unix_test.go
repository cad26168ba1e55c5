//go:build unix

package caller_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

func TestFileOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "callers.json")
	write(t, path, entry("x", "x", ""))
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o640: "", 0o644: "may read", 0o604: "may read",
		0o620: "others may write it", 0o602: "others may write it", 0o666: "others may write it",
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		_, err := caller.Open(path, &caller.FileOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		said := log.String()
		if err != nil {
			said = err.Error()
		}
		if refused := mode&0o022 != 0; refused != (err != nil) || want != "" && !strings.Contains(said, want) || want == "" && strings.Contains(said, "level=WARN") {
			t.Errorf("%s: %q, want %q", mode, said, want)
		}
	}
	if _, err := caller.Open(t.TempDir(), nil); err == nil {
		t.Error("a directory is read")
	}
	if os.Geteuid() == 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := caller.Open(path, nil); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Errorf("a file of another user: %v", err)
		}
	}
}

// TestAddKeepsGroup checks that a file keeps its group and mode when root adds a caller. The server
// may read the file as a member of that group.
func TestAddKeepsGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give a file to any group")
	}
	path := filepath.Join(t.TempDir(), "callers.json")
	write(t, path, entry("x", "x", ""))
	if err := errors.Join(os.Chown(path, -1, 12345), os.Chmod(path, 0o640)); err != nil {
		t.Fatal(err)
	}
	if _, err := caller.Add(path, caller.Caller{Name: "y", Rights: caller.Read}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if gid := info.Sys().(*syscall.Stat_t).Gid; gid != 12345 || info.Mode().Perm() != 0o640 {
		t.Errorf("the file has group %d and mode %s", gid, info.Mode())
	}
}
