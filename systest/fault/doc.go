// Package fault has the faults of the fault tests other than those of the network
// (internal/faultproxy) and of processes (internal/testsvc): of a server's clock, of its data,
// and of engines as a whole.
package fault
