// Package sim runs the real library, the real Redis engine and the real Redis
// client in virtual time, against a server in memory that runs the engine's own
// scripts, through a network that loses, delays and repeats messages. Each run has a seed; two
// processors make about twenty runs a second.
//
// # What is real
//
// The scripts are redislock's own. A Lua interpreter runs them on a simulated keyspace.
// TestServerConforms runs the conformance suite on the server, and TestServerAnswersAsRedis
// compares it with a real server, command by command.
//
// The interpreter writes large integers with all their digits where Redis rounds them: tests
// on a real server find a script that forgets '%.0f', this package does not.
//
// # What happens in a run
//
// Three to five clients, with two or three workers each, compete for two names and for
// the keys of do-once work: exclusively, shared, as a semaphore, with and without
// waiting, with every option that changes a lease's end. Now and then one of them leaves
// its lease, and another host adopts it. Requests, replies and messages are lost, delayed
// and repeated; hosts are cut off or die; the server pauses, restarts with or without its
// data, forgets everything, or its clock is stepped. Then the faults end, the work ends, the
// clients are closed, and a day passes.
//
// # What must hold
//
//   - Until the store loses data or its clock goes forward, no two leases that exclude one
//     another are trusted at the same time, and the store keeps a lease for at least as long
//     as a client trusts it. Virtual time is one clock, so both are compared to the
//     nanosecond.
//   - Until then, a resource refuses no valid lease, and do-once work is done once.
//   - Always: tokens grow in the order of the grants, even over a loss of data if the clock
//     has advanced by more than its error; a resource accepts no token below one that it has
//     accepted; no waiter with a place is overtaken; no client blocks others for longer than
//     its TTL; the store had each lease that it confirmed; no renewal is sent after a release;
//     no waiter spins.
//   - Unless data was lost: no lease ID is granted after the store has confirmed its end, and
//     closed clients leave no leases or places.
//   - After the faults, no client waits for a free name for longer than a refresh, and every
//     waiter gets its turn. At the end only last tokens and records are left; a day later
//     nothing is left, and no goroutine.
//
// # What a seed decides
//
// A seed decides the clients, their work, the faults and the fate of each message. It does not
// decide how goroutines are scheduled at one instant, nor the library's jitter, which has no
// seed: a replay has faults of the same kinds at the same times, but not always the same
// result. -repeat repeats the run of a seed many times, until there is a violation.
package sim
