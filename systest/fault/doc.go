// Package fault holds what goes wrong in the fault tests, beside the network
// (internal/faultproxy) and the processes (internal/testsvc): the clock of a
// server, its data, and engines as a whole.
package fault
