// Package systest has the fault tests: the real client on real servers, with a network
// between them that delays, loses and holds data and is cut (internal/faultproxy), with
// processes that are stopped and killed, clocks that step, and data that is lost. It is never
// released.
//
// Each file here has one theme. If a test shows that something never happens, a second test shows
// that the same check would detect it. The tests use these packages:
//
//	model/    models of correct behaviour: histories of a lock (lease), and every state of
//	          the quorum's protocol (quorum)
//	traffic/  clients, in processes of their own, and the resource they write to
//	fault/    faults of clocks and engines
//	check/    verdicts on what clients and resources saw
//	report/   the results
//	soak/     how much the tests do: -soak 30m as docs/guarantees.md reports
//
// The other packages are independent: sim/ simulates client, engine, network and store in
// virtual time, faults/ puts faults into the product and runs the tests that find them,
// bench/ measures holdfast and its peers in a workspace of its own, and nettest/ repeats
// these tests on the networks of net/, whose hosts are network namespaces.
package systest
