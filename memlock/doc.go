// Package memlock is an engine that keeps locks in the memory of one process:
// the reference for the other engines, and the store for tests of programs
// that use package holdfast.
//
// # What
//
// An engine without a server, a file, or a module: all that engines can do, for the
// goroutines of one process. Its locks are gone with the process.
//
// # Example
//
//	engine := memlock.New()
//	client, err := holdfast.New(engine, nil)
//
// # Guarantees
//
// One mutex makes each request one step. It passes the conformance suite in full, and
// keeps every invariant of the other engines.
//
// # What is not promised
//
// Other processes know nothing of its locks. It is for tests, and for programs that
// are one process and want tokens, queues or do-once work without a store.
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
// Those of the contract, and no others: it is always reachable. After Close every call
// is ErrClosed.
//
// # Testing
//
// Package holdfasttest puts faults, losses and other holders in front of it, for tests
// of programs.
//
// # How to read it
//
// Whoever writes an engine finds here what package driver asks for, in its
// simplest form, and nothing about any store. Each file begins with the duties
// that it shows:
//
//	memlock.go  one step at a time, by one clock; nothing is kept for ever
//	lock.go     what is remembered of a name, and the steps of leases and places
//	acquire.go  deciding and recording are one step: Acquire, AcquireAll
//	queue.go    whose turn it is, and how they hear of it: Queuer
//	lease.go    only the holder's own lease: Extend, Release, Downgrade
//	record.go   what came of work that is done once: Recorder
//	break.go    taking a lock away, and telling its holder: Breaker, LossTeller
//	inspect.go  what people are shown: Inspect, Lister
//	history.go  what happened, and happens: Historian
//	vault.go    payloads that are handed out once: Vault
//	member.go   one store of a quorum: Member
//
// Package driver/rules decides who is granted a lock, and package
// driver/mailbox delivers notices. Both are for every engine.
//
// # Concurrency
//
// An Engine is safe for concurrent use. It starts no timer, and no goroutine but one
// that tells of events, if somebody listens to them and as long as there are any: a
// lease that ran out is noticed by the next request for its name.
package memlock
