// Package memlock is an engine that keeps locks in the memory of one process:
// the reference for the other engines, and the store for tests of programs
// that use package holdfast.
//
// It measures time with time.Now, so a test inside a testing/synctest bubble
// runs leases of hours in no time.
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
//	vault.go    payloads that are handed out once: Vault
//	member.go   one store of a quorum: Member
//
// Package driver/rules decides who is granted a lock, and package
// driver/mailbox delivers notices. Both are for every engine.
//
// # Concurrency
//
// An Engine is safe for concurrent use. It starts no goroutine and no timer:
// a lease that ran out is noticed by the next request for its name.
package memlock
