// Package sim runs the real library, the real Redis engine and the real Redis
// client in virtual time, against a server in memory that runs the engine's own
// scripts, through a network that loses, delays and repeats what it carries.
// One seed makes one run; two processors make about twenty in a second.
//
// # What is real
//
// The scripts are redislock's own, run by a Lua interpreter on a keyspace of
// ours. TestServerConforms runs the conformance suite on it, and
// TestServerAnswersAsRedis compares it with a real server, command by command.
//
// The interpreter writes large integers with all their digits where Redis
// would round them: a script that forgets '%.0f' is found by the tests on a
// real server, not here.
//
// # What happens in a run
//
// Three to five clients, with two or three workers each, compete for two names and for
// the keys of do-once work: exclusively, shared, as a semaphore, with and without
// waiting, with every option that changes a lease's end. Now and then one of them leaves
// its lease, and another host adopts it. Requests, replies and messages are lost, delayed
// and repeated; hosts are cut off or die; the server pauses, restarts with or without its
// data, forgets everything, or its clock is stepped. Then all is well again, the work
// ends, the clients are closed, and a day goes by.
//
// # What must hold
//
//   - Until the store loses data or its clock goes forward, no two leases that
//     exclude one another are trusted at the same instant, and what a client
//     trusts the store keeps for at least as long. Virtual time is one clock,
//     so both are compared to the nanosecond.
//   - A resource refuses no valid lease meanwhile, and do-once work is done
//     once.
//   - Always: tokens grow in the order of the grants, over a loss of data as
//     long as the clock has come further than it was wrong; a resource accepts
//     no token below one that it has accepted; no waiter with a place is
//     overtaken; no client is in the way for longer than its TTL; what the store
//     is said to have confirmed it had; no renewal is sent after a release; no
//     waiter spins.
//   - Unless data was lost: no lease ID is granted after the store has
//     confirmed its end, and clients that are closed leave nothing.
//   - Once all is well no client waits for a free name for longer than a refresh,
//     and every waiter gets its turn. In the end only last tokens and records are
//     left, a day later nothing, and no goroutine.
//
// # What a seed decides
//
// The clients, their work, the faults and what the network does to each message. It does
// not decide how goroutines are scheduled at one instant, nor the library's own jitter,
// which has no seed: a replay meets faults of the same kinds at the same times, but not
// always the same end. -repeat makes the run of a seed many times, until something is
// found.
package sim
