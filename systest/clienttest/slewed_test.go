package clienttest

import (
	"os/exec"
	"testing"
)

// slowReader reads lines of a stream with a clock that runs slow, and then a line that was delayed
// for 5 s.
const slowReader = `
import holdfast
clock = 100.0
holdfast._now = lambda: clock
held = holdfast._Held.__new__(holdfast._Held)
held._quiet, held._sent = 10, None
for line in range(100):
    held._trusted(100.0, {"at_ms": 5000 * line})
    left = held._deadline - clock
    assert left <= 9.001, f"line {line}: trusted for {left} s from when it was read"
    clock += 5 * 0.917
clock += 5 * 0.917
held._trusted(100.0, {"at_ms": 5000 * 100})
left = held._deadline - clock
assert left <= 9 - 5 * 0.917 + 0.5, f"a late line: trusted for {left} s"
`

// TestStreamBySlowClock checks that a client whose clock is slower than the server's trusts no line
// for longer than the quiet time, however long the stream lasts. INVARIANT I3.
func TestStreamBySlowClock(t *testing.T) {
	run := exec.Command("python3", "-B", "-c", slowReader)
	run.Env = append(run.Environ(), "PYTHONPATH="+tree+"python")
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
