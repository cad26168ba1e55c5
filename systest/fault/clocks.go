//go:build linux

package fault

import (
	_ "embed"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

//go:embed clock/clock.c
var clockSource []byte

// Clocks are the wall clocks of the servers that a test starts. They can be stepped and
// slewed while the servers run; the clock of the test does not change.
type Clocks struct {
	t   testing.TB
	dir string // has a file for each process
}

// NewClocks gives all servers that the test starts from now on clocks that can be stepped and
// slewed. It needs a C compiler, and a test that does not run in parallel with others.
func NewClocks(t *testing.T) *Clocks {
	t.Helper()
	dir := t.TempDir()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v; install a C compiler (Debian: apt-get install gcc libc6-dev)\n%s", err, out)
	}
	t.Setenv("LD_PRELOAD", library)
	t.Setenv("SHIFTED_CLOCKS", dir)
	return &Clocks{t, dir}
}

// Step steps the clock of a server's process: its error is by from now on. A process begins with
// the right time.
func (c *Clocks) Step(pid int, by time.Duration) {
	c.t.Helper()
	c.write(pid, 0, by.Microseconds())
}

// Slew makes the clock of a server's process run at the given rate from now on. The clock must
// not have been slewed before.
func (c *Clocks) Slew(pid int, rate float64) {
	c.t.Helper()
	c.write(pid, 2, time.Now().UnixMicro())
	c.write(pid, 1, int64(math.Round((rate-1)*1e6)))
}

// write sets one of the numbers that clock.c reads.
func (c *Clocks) write(pid, at int, number int64) {
	c.t.Helper()
	file, err := os.OpenFile(filepath.Join(c.dir, strconv.Itoa(pid)), os.O_WRONLY, 0)
	if err != nil {
		c.t.Fatalf("the process has no clock of its own: %v", err)
	}
	defer file.Close()
	// One write of a word that the process has mapped: the process sees all of it or nothing.
	if _, err := file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(number)), int64(8*at)); err != nil {
		c.t.Fatal(err)
	}
}
