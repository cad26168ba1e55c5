// Package quorumsim runs clients of the library on a quorum in virtual time:
// the real client, the real quorumlock, and members in memory with clocks that
// are off and connections that fail.
//
// In a run two to four clients take two names in turns, on three or five members. Half of
// the clients use a load balancer: each of their requests goes to one of two engines, so
// that both propose under one lease ID, and each takes back what it has proposed. The
// clocks of the clients are off by up to a second and a half, the members' by up to 150
// ms. Every few moments the connections of a client fail for 1 to 50 ms, all or some, for
// all requests or for one kind: they are reset or refused, or replies are lost, or
// requests arrive late, or twice. Clients retry under the same lease ID and under new
// ones, stop while a request is under way, and send a MinToken. In some runs members lose
// their memory. Then all is well again.
//
// What must hold: no two leases of a name are valid at once; tokens are distinct, and a
// token requested after another was granted is greater; in the end every name is free,
// and no keys are left.
//
// A seed decides who does what and what fails when, but not how goroutines are
// scheduled at one instant: a replay is alike, and not always the same.
package quorumsim
