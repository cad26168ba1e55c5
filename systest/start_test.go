package systest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/sqlitelock"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// TestRunCostsLittle checks that a command under a free lock takes little longer than the command
// alone. The two alternate, so that load on the machine slows both.
func TestRunCostsLittle(t *testing.T) {
	const most = 10 * time.Millisecond
	t.Setenv("CGO_ENABLED", "0") // as docs/run.md advises
	binary, redis := buildBinary(t), testsvc.Redis(t)
	stores := map[string]string{
		"a file": "sqlite://" + t.TempDir() + "/locks.db",
		"Redis":  redis.URL,
	}
	if os.Geteuid() == 0 { // only root can make a system store
		path := filepath.Join(t.TempDir(), "holdfast", "locks.db")
		if _, err := sqlitelock.MakeSystem(t.Context(), path, 1); err != nil {
			t.Fatal(err)
		}
		stores["a system store"] = "sqlite://" + path
	}
	for store, url := range stores {
		alone, locked := []time.Duration{}, []time.Duration{}
		for range soak.Count(5, 300) {
			alone = append(alone, timeOf(t, "true"))
			locked = append(locked, timeOf(t, binary, "run", "--store", url, "job", "--", "true"))
		}
		a, l := distributionOf(alone), distributionOf(locked)
		report.Row(t, "nobody else wants the lock, on "+store, "`holdfast run job -- true` takes at most 10 ms longer than `true` (medians)",
			"%d of each in turn: %s and %s, least %s and %s", len(alone), a.median, l.median, alone[0], locked[0])
		if soak.Long() && l.median-a.median > most {
			t.Errorf("on %s it takes %s longer, want at most %s", store, l.median-a.median, most)
		}
	}
}

// timeOf runs a program that must succeed, and returns how long that took.
func timeOf(t *testing.T, program string, args ...string) time.Duration {
	t.Helper()
	began := time.Now()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	took := time.Since(began)
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	return took.Round(10 * time.Microsecond)
}
