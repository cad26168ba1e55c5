// Package systest holds the fault tests: the real client on real servers, with a network
// between them that delays, loses, holds and cuts (internal/faultproxy), with processes
// that are stopped and killed, clocks that step, and data that is lost. It is never
// released.
//
// Each file here is one theme. Where a test shows that something never happens,
// a second one shows that the same check would see it happen. What the tests
// use is in rooms of its own:
//
//	model/    what is legal: histories of a lock (lease), and every state of
//	          the quorum's protocol (quorum)
//	traffic/  clients, in processes of their own, and the resource they write to
//	fault/    what goes wrong with clocks and engines
//	check/    verdicts on what clients and resources saw
//	report/   what was measured
//	soak/     how much is done: -soak 30m for what docs/guarantees.md reports
//
// The other packages are independent: sim/ simulates client, engine, network and store in
// virtual time, faults/ puts faults into the product and runs the tests that find them,
// bench/ measures holdfast and its peers in a workspace of its own, and nettest/ repeats
// these tests on the networks of net/, whose hosts are network namespaces.
package systest
