package sqlitelock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

func diagnose(t *testing.T, e *Engine) map[string]driver.Finding {
	t.Helper()
	d, err := e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]driver.Finding{}
	for _, f := range d.Findings {
		found[f.Key] = f
		if (f.Err != nil) != (f.Level == driver.Fail) {
			t.Errorf("%s is %s with the error %v", f.Key, f.Level, f.Err)
		}
	}
	return found
}

// wantLevels fails t unless the findings have the levels in want, and all others are OK.
func wantLevels(t *testing.T, found map[string]driver.Finding, want map[string]driver.Level) {
	t.Helper()
	for _, key := range []string{"file_system", "journal", "schema", "permissions", "size", "clock", "locks", "names", "tokens"} {
		f, ok := found[key]
		if !ok || f.Level != want[key] {
			t.Errorf("%s is %s, want %s: %q (there: %t)", key, f.Level, want[key], f.Text, ok)
		}
	}
}

func TestDiagnose(t *testing.T) {
	e := openNew(t)
	drivertest.Granted(t, e, drivertest.Request("held", time.Minute))
	drivertest.Queued(t, e, "held", time.Minute)
	found := diagnose(t, e)
	wantLevels(t, found, nil)
	if c := found["names"].Counts; c["held"] != 1 || c["queued"] != 1 || c["names"] != 1 {
		t.Errorf("counts %v, want one held, one queued and none of the probes", c)
	}
	if n := found["size"].Counts["database_bytes"]; n < pageSize {
		t.Errorf("%d bytes", n)
	}
	for l, err := range e.List(t.Context(), "holdfast-doctor-") {
		t.Errorf("%s is still held (%v)", l.Name, err)
	}
}

func TestDiagnoseWarns(t *testing.T) {
	e := openNew(t)
	req := drivertest.Request("ahead", time.Minute)
	req.MinToken = uint64(time.Now().Add(50 * time.Minute).UnixMicro())
	drivertest.Granted(t, e, req)
	if err := os.Chmod(e.path, 0o666); err != nil {
		t.Fatal(err)
	}
	must(t, plain(t, e.path), `PRAGMA user_version = 2`)
	found := diagnose(t, e)
	wantLevels(t, found, map[string]driver.Level{"tokens": driver.Warn, "permissions": driver.Warn, "schema": driver.Warn})
	for key, text := range map[string]string{"tokens": `"ahead"`, "permissions": e.path, "schema": "number 2"} {
		if !strings.Contains(found[key].Text, text) {
			t.Errorf("%s: %q is not in %q", key, text, found[key].Text)
		}
	}
	if lead := found["tokens"].Measures["lead"]; lead < 49*time.Minute || lead > 50*time.Minute {
		t.Errorf("lead %s, want 50 minutes", lead)
	}
}

func TestDiagnoseErrors(t *testing.T) {
	e := openNew(t)
	if err := os.Rename(e.path, filepath.Join(t.TempDir(), "moved")); err != nil {
		t.Fatal(err)
	}
	_, err := e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: time.Second})
	wantIs(t, "diagnose of a file that is gone", err, driver.ErrUnavailable)
	_ = e.Close()
	_, err = e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: time.Second})
	wantIs(t, "diagnose after Close", err, driver.ErrClosed)
}

func TestJudgements(t *testing.T) {
	for kind, want := range map[string]driver.Level{
		"ext4": driver.OK, "apfs": driver.OK, "nfs4": driver.Warn, "smbfs": driver.Warn, "fuse.other": driver.Warn, "overlay": driver.OK,
	} {
		if f := fileSystemFinding(kind); f.Level != want {
			t.Errorf("%s is %s, want %s", kind, f.Level, want)
		}
	}
}
