// Package quorumsim runs clients of the library on a quorum in virtual time:
// the real client, the real quorumlock, and members in memory behind clocks that
// are off and connections that fail.
//
// In a run two to four clients take two names in turns, on three or five
// members. The clocks of the clients are off by up to a second and a half, those
// of the members by up to 150 ms. Every few moments the connections of a client
// fail for 1 to 50 ms, all or some, for all requests or for one kind: they are
// reset or refused, or replies are lost, or requests arrive late, or twice.
// Clients retry under the same lease ID and under new ones, give up while a
// request is under way, and give a MinToken. In some runs members lose their
// memory. Then all is well again.
//
// What must hold: no two leases of a name are valid at once; tokens are distinct,
// and one that was asked for after another was granted is greater; in the end
// every name can be had, and nothing is left behind.
//
// A seed decides who does what and what fails when, but not how goroutines are
// scheduled at one instant: a replay is alike, and not always the same.
package quorumsim
