// Package nettest has the fault tests on networks. The real clients, the real command and real
// servers run on hosts of package systest/net. The hosts are cut off, lose packets, vanish, and
// reach each other in one direction only. The tests have the build tag soaknet; make soak-net runs
// them.
package nettest
