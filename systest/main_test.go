package systest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// jobs are the jobs of the crews of this package.
var jobs = traffic.Jobs{
	"take turns":        takeTurns,
	"queue up":          queueUp,
	"stress":            traffic.Stress,
	"locks":             traffic.Locks,
	"hold until death":  holdUntilDeath,
	"hold until broken": holdUntilBroken,
	"do once":           doOnce,
	"run every second":  runEverySecond,
	"work until signal": workUntilSignal,
	"serve":             serve,
	"hold streams":      holdStreams,
	"pairs and events":  serveAndPair,
	"read events":       readEvents,
	string(asks):        hold(asks),
	string(waits):       hold(waits),
}

// TestMain runs the tests, or the job if a test started this process as a crew.
func TestMain(m *testing.M) {
	if jobs.Main() {
		return
	}
	// rueidis refreshes the topology a little later, and closes connections to removed nodes after
	// five seconds, even after the client is closed. go-redis sleeps for a second between two
	// attempts to connect to a server that is down, even after Close.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
