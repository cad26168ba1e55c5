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
	// The client library looks at the topology a little later, and closes
	// connections to nodes that it no longer knows after five seconds, whatever
	// becomes of the client meanwhile.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}
