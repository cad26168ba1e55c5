// Package mem is the engine of package memlock, and a member of a quorum in memory. Tests
// of all packages use it, because its constructors cannot fail.
//
// For authors of engines it is the simplest implementation of all that package driver demands,
// without a store. Each file begins with the duties that it shows:
//
//	mem.go      one step at a time, by one clock; memory is bounded
//	lock.go     the state of a name, and the steps of leases and places
//	acquire.go  deciding and recording are one step: Acquire, AcquireAll
//	queue.go    places, hand-overs and notices: Queuer
//	lease.go    only the holder's own lease: Extend, Release, Downgrade
//	record.go   results of do-once work: Recorder
//	break.go    taking a lock away, and notifying its holder: Breaker, LossTeller
//	inspect.go  the state of locks, for people: Inspect, Lister
//	history.go  events, past and present: Historian
//	vault.go    payloads that are handed out once: Vault
//	member.go   one store of a quorum: Member
//	member_end.go
//	            how a lease of a quorum ends: Withdraw and Break
//
// Package driver/rules decides which request is granted a lock, and package driver/mailbox
// delivers notices. Every engine can use both.
package mem
