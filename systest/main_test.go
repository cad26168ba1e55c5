package systest

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or the process that a test starts from its own
// binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == holderCommand {
		runHolder(os.Args[2:])
		return
	}
	goleak.VerifyTestMain(m)
}
