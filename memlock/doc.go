// Package memlock is an engine that keeps locks in the memory of one process:
// the reference for the other engines, and the store for tests of programs
// that use package holdfast.
//
// # What
//
// An engine without a server, a file or a further module. It has all features of engines, for the
// goroutines of one process. Its locks end with the process.
//
// # Example
//
//	engine, err := memlock.New(nil)
//	if err != nil {
//		return err
//	}
//	defer engine.Close()
//	client, err := holdfast.New(engine, nil)
//
// # Guarantees
//
// One mutex makes each request one step. It passes the conformance suite in full, and
// keeps every invariant of the other engines.
//
// # What is not promised
//
// Its locks do not exist for other processes. It is for tests, and for single-process
// programs that want tokens, queues or do-once work without a store.
//
// # Clocks
//
// It measures time with time.Now, so a test inside a testing/synctest bubble
// runs leases of hours in no time.
//
// # Fencing
//
// Tokens grow as long as the engine lives; a new engine begins with the present time in
// microseconds, so that they grow over a restart, too, unless the clock goes back.
//
// # Errors
//
// There are only the errors of package driver: the store is always reachable. After Close every
// call returns ErrClosed.
//
// # Testing
//
// Package holdfasttest adds faults, losses and other holders to it, for tests of programs.
//
// # Concurrency
//
// An Engine is safe for concurrent use. It starts no timer: the next request for a name notices an
// expired lease. It starts one goroutine, which delivers events while there are listeners.
package memlock
