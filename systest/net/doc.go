// Package net makes networks for tests, and breaks them as real ones break. Hosts are network
// namespaces of this machine. Between them is a simulated wire, which delays, loses and copies
// packets, and can be cut.
//
//	n := net.New(t)
//	store, worker := n.Host("store"), n.Host("worker")
//	store.Start(t, "redis-server", "--bind", store.IP(), …).Await("Ready")
//	n.Link(store, worker).Delay(40*time.Millisecond, 5*time.Millisecond).Loss(0.05)
//	n.OneWay(store, worker)
//	n.Heal()
//	store.Vanish()
//
// The wire sends no packets of its own: it loses packets silently, without RST or ICMP, unless
// the kernel of a living host sends one. So peers notice a cut as in a real network: by
// silence.
//
// A host is a namespace with a TUN device, an address of the documentation network
// 192.0.2.0/24, and no other route, so nothing leaves the machine. Namespaces and devices have
// no names, so that the kernel removes them with the test, however the test ends.
//
// Hosts need Linux, the ip program (iproute2), /dev/net/tun, and root or CAP_NET_ADMIN
// and CAP_SYS_ADMIN, which "unshare --user --map-root-user" gives to users who may make
// user namespaces. Their tests have the build tag soaknet. The wire alone needs none of that,
// and works in virtual time.
package net
