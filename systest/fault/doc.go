// Package fault holds the faults of the fault tests other than those of the network
// (internal/faultproxy) and of processes (internal/testsvc): the clock of a server, its
// data, and engines as a whole.
package fault
