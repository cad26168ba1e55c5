// Package nettest holds the fault tests on networks: the real clients, the real
// command and real servers on hosts of their own (systest/net), which are cut
// off, lose packets, vanish, and see each other in one direction only. Its tests
// have the build tag soaknet; make soak-net runs them.
package nettest
