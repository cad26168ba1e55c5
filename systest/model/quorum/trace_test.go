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

// texts describe the kinds of steps. C is the client, N the number of the node, T the token, and
// STATE the state of the node after the step.
var texts = map[kind]string{
	begin:                  "C begins: it proposes T to all nodes",
	deliverProposal:        "C's proposal of T arrives at node N: STATE",
	deliverFirst:           "C's proposal of T arrives at node N: STATE",
	again:                  "C proposes T to all nodes instead",
	againGivingUp:          "C gives up its first token, and proposes T to all nodes",
	comesBack:              "C comes back under the same lease ID, and proposes T to all nodes",
	givesWay:               "C gives way where its token was accepted",
	completes:              "C counts its answers: it holds the lock with token T",
	adopts:                 "C hears of the lease with token T of its lease ID, and sends an extension to all nodes",
	deliverAdoption:        "C's extension of T arrives at node N: STATE",
	adoptionDone:           "C counts its answers: it holds the lock with token T",
	adoptionFails:          "C counts its answers: the lease with token T is lost",
	sendExtension:          "C sends an extension to all nodes",
	deliverExtension:       "C's extension arrives at node N: STATE",
	extensionDone:          "C counts its answers: its lease is extended",
	breaks:                 "C's lease is broken",
	deliverBreak:           "the break of C's lease arrives at node N: STATE",
	deliverRepair:          "C's repair arrives at node N: STATE",
	releases:               "C releases",
	givesUp:                "C gives up",
	deliverWithdrawal:      "C's release of T arrives at node N: STATE",
	deliverFirstWithdrawal: "C's withdrawal of T arrives at node N: STATE",
	reachesDeadline:        "C reaches its deadline",
	expires:                "C's lock expires early at node N",
	expiresWhenOver:        "C's lock expires at node N",
	restarts:               "node N restarts and has forgotten everything",
	serves:                 "the quarantine of node N ends",
}

func (s step) describe(after *world) string {
	token := s.token
	if s.kind == completes {
		token = after.clients[s.client].token
	}
	return strings.NewReplacer("C", name(s.client), "N", fmt.Sprint(s.node+1), "T", fmt.Sprint(token), "STATE", after.nodes[s.node].String()).
		Replace(texts[s.kind])
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
