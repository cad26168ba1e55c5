// Package quorumsim runs clients of the library on a quorum in virtual time: the real client, the
// real quorumlock, and members in memory whose clocks are wrong and whose connections fail.
//
// In a run two to four clients take turns with two names, on three or five members. Half of the
// clients use a load balancer: each of their requests goes to one of two engines, so that both
// propose under one lease ID, and each withdraws its own proposals. The clocks of the clients are
// off by up to a second and a half, the members' by up to 150 ms. Every few moments the
// connections of a client fail for 1 to 50 ms, all or some, for all requests or for one kind:
// they are reset or refused, replies are lost, or requests arrive late or twice. Clients retry
// under the same lease ID and under new ones, stop while a request is under way, and send a
// MinToken. In some runs members lose their memory. Then all faults end.
//
// What must hold: no two leases of a name are valid at once; tokens are distinct, and a token
// requested after another was granted is greater; in the end every name is free, and no keys are
// left.
//
// A seed decides the clients' work and the faults, but not how goroutines are scheduled at one
// instant: a replay is similar, but not always the same.
package quorumsim
