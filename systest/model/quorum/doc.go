// Package quorum explores the protocol of package quorumlock state by state: every order of
// messages, every expiry and every restart within the bounds. The model has no time. A message
// may arrive at any moment after it was sent, any number of times, or never; a lock may expire
// at any moment. A property that holds here holds whatever clocks and networks do.
//
// The model follows the protocol, not the code: package quorumlock is checked by its own
// tests. Each rule of the protocol can be switched off, and the search then finds a run
// in which two holders have the same token, or the later one the smaller, or a lease
// comes back. A rule whose absence breaks nothing is not needed.
//
// # The protocol
//
// A node keeps, for each name, a lock (owner and token) and a counter. An acquisition
// proposes a token to all nodes. A node whose lock is free accepts it only if it is above
// its counter, and then takes it as its counter. The lock is held with a token that a
// majority accepted. If too few could accept, a second round proposes a greater token to
// all, and nodes that accepted the first replace it. A client may also give way: it
// withdraws the token from the nodes that have accepted it, no longer counts them, and waits
// for the others. Or it gives up, and comes back under the same lease ID while the withdrawal
// of its proposal is still under way; each new proposal is above all earlier ones. An
// extension counts nodes that have the lock with exactly this token. When it has a majority,
// nodes that lack the lock are repaired, unless their counter is above the token. A release frees
// the lock and lifts the counter above the token, on all nodes. So does a break, but the holder goes
// on until it learns of it. A node that lost its memory
// neither accepts nor repairs until every lease that it may have forgotten has expired.
package quorum
