package systest

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or the process that a test starts from its own
// binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case holderCommand:
			runHolder(os.Args[2:])
			return
		case crewCommand:
			runCrew(os.Args[2])
			return
		}
	}
	goleak.VerifyTestMain(m)
}
