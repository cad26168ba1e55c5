package quorum

import (
	"fmt"
	"strings"
)

// describe writes a trace for people, one step a line: clients are A, B and C, nodes are 1, 2 and
// 3. Each message is followed by the resulting state of the node.
func describe(p *protocol, r result) string {
	var b strings.Builder
	w := r.first.unpack()
	for n := range w.nodes {
		if w.nodes[n].counter > 0 {
			fmt.Fprintf(&b, "  0  the counter of node %d is %d\n", n+1, w.nodes[n].counter/2)
		}
	}
	for i, s := range r.trace {
		w = p.follow(w, s)
		fmt.Fprintf(&b, "%3d  %s\n", i+1, s.describe(&w))
	}
	return b.String()
}

// follow returns the world after s.
func (p *protocol) follow(w world, s step) world {
	var after world
	p.next(w.pack(!p.ordered), func(to key, taken step, _ string) {
		if taken == s {
			after = to.unpack()
		}
	})
	return after
}

func (s step) describe(after *world) string {
	c := name(s.client)
	node := &after.nodes[s.node]
	at := fmt.Sprintf("at node %d", s.node+1)
	switch s.kind {
	case begin:
		return fmt.Sprintf("%s begins: it proposes %d to all nodes", c, s.token)
	case deliverProposal, deliverFirst:
		return fmt.Sprintf("%s's proposal of %d arrives %s: %s", c, s.token, at, node)
	case again:
		return fmt.Sprintf("%s proposes %d to all nodes instead", c, s.token)
	case againGivingUp:
		return fmt.Sprintf("%s gives up its first token, and proposes %d to all nodes", c, s.token)
	case comesBack:
		return fmt.Sprintf("%s comes back under the same lease ID, and proposes %d to all nodes", c, s.token)
	case givesWay:
		return fmt.Sprintf("%s gives way where its token was accepted", c)
	case completes:
		return fmt.Sprintf("%s counts its answers: it holds the lock with token %d", c, after.clients[s.client].token)
	case adopts:
		return fmt.Sprintf("%s hears of the lease with token %d of its lease ID, and sends an extension to all nodes", c, s.token)
	case deliverAdoption:
		return fmt.Sprintf("%s's extension of %d arrives %s: %s", c, s.token, at, node)
	case adoptionDone:
		return fmt.Sprintf("%s counts its answers: it holds the lock with token %d", c, s.token)
	case adoptionFails:
		return fmt.Sprintf("%s counts its answers: the lease with token %d is lost", c, s.token)
	case sendExtension:
		return fmt.Sprintf("%s sends an extension to all nodes", c)
	case deliverExtension:
		return fmt.Sprintf("%s's extension arrives %s: %s", c, at, node)
	case extensionDone:
		return fmt.Sprintf("%s counts its answers: its lease is extended", c)
	case deliverRepair:
		return fmt.Sprintf("%s's repair arrives %s: %s", c, at, node)
	case releases:
		return fmt.Sprintf("%s releases", c)
	case givesUp:
		return fmt.Sprintf("%s gives up", c)
	case deliverWithdrawal:
		return fmt.Sprintf("%s's release of %d arrives %s: %s", c, s.token, at, node)
	case deliverFirstWithdrawal:
		return fmt.Sprintf("%s's withdrawal of %d arrives %s: %s", c, s.token, at, node)
	case reachesDeadline:
		return fmt.Sprintf("%s reaches its deadline", c)
	case expires:
		return fmt.Sprintf("%s's lock expires early %s", c, at)
	case expiresWhenOver:
		return fmt.Sprintf("%s's lock expires %s", c, at)
	case restarts:
		return fmt.Sprintf("node %d restarts and has forgotten everything", s.node+1)
	}
	return fmt.Sprintf("the quarantine of node %d ends", s.node+1)
}

// name names client i.
func name(i int) string { return string(rune('A' + i)) }

// String describes the node.
func (n *node) String() string {
	lock := "free"
	if n.owner != 0 {
		lock = fmt.Sprintf("%s has the lock with %d", name(int(n.owner-1)), n.token)
	}
	if n.confirmed {
		lock += ", confirmed"
	}
	lifted := ""
	if n.counter%2 == 1 {
		lifted = ", released"
	}
	return fmt.Sprintf("%s (counter %d%s)", lock, n.counter/2, lifted)
}
