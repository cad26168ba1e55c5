package quorum

import "math/bits"

// A kind is the kind of a step.
type kind uint8

const (
	begin kind = iota + 1
	deliverProposal
	deliverFirst // the first proposal, after the client's second
	again
	againGivingUp
	comesBack
	givesWay
	completes
	adopts
	deliverAdoption
	adoptionDone
	adoptionFails
	sendExtension
	deliverExtension
	extensionDone
	breaks
	deliverBreak
	deliverRepair
	releases
	givesUp
	deliverWithdrawal
	deliverFirstWithdrawal
	reachesDeadline
	expires
	expiresWhenOver
	restarts
	serves
)

// A step is one event.
type step struct {
	kind   kind
	client int
	node   int
	token  uint8
}

// A walk yields the steps from one world.
type walk struct {
	*protocol
	from  world
	at    key
	to    world // the copy that take changes; kept here to avoid allocations
	yield func(key, step, string)
}

// next implements system.
func (p *protocol) next(k key, yield func(key, step, string)) {
	walk := walk{protocol: p, from: k.unpack(), at: k, yield: yield}
	for c := range p.clients {
		walk.acquire(c)
		walk.adopt(c)
		walk.hold(c)
		for n := range nodes {
			walk.deliver(c, n)
		}
	}
	for n := range nodes {
		walk.fault(n)
	}
}

// take yields the step s to a copy of the world that do changes, unless do changes nothing.
func (walk *walk) take(s step, do func(w *world) (broken string)) {
	walk.to = walk.from
	broken := do(&walk.to)
	if walk.to == walk.from { // as after most copies of a message
		return
	}
	if broken == "" {
		broken = walk.back(&walk.to)
	}
	if to := walk.to.pack(!walk.ordered); to != walk.at {
		walk.yield(to, s, broken)
	}
}

// change is take for a step that changes nothing but its client.
func (walk *walk) change(s step, do func(own *client)) {
	walk.take(s, func(w *world) string {
		do(&w.clients[s.client])
		return ""
	})
}

// completed returns the clients that have completed, as bits.
func (w *world) completed() (bits uint8) {
	for i := range w.clients {
		bits |= bit(w.clients[i].completed) << i
	}
	return bits
}

// acquire yields the steps of client c up to its lease.
func (walk *walk) acquire(c int) {
	own := walk.from.clients[c]
	switch {
	case own.phase == idle && walk.mayBegin(c):
		for token := uint8(1); token <= walk.tokens; token++ {
			walk.change(step{kind: begin, client: c, token: token}, func(own *client) {
				own.phase, own.token, own.before = proposing, token, own.before|walk.from.completed()
			})
		}
	case own.phase == proposing:
		walk.proposeAgain(c)
		walk.giveWay(c)
		if walk.votes(&own) >= quorum {
			walk.take(step{kind: completes, client: c}, func(w *world) string { return walk.complete(w, c) })
		}
		walk.change(step{kind: givesUp, client: c}, (*client).withdraws)
	case own.phase == withdrawn:
		walk.comeBack(c)
	}
}

// mayBegin reports whether client c may begin. Clients are alike, so they begin in the order of
// their numbers. If the first two share a lease ID, the third may begin at any time. No client
// requests a lease ID that was released.
func (walk *walk) mayBegin(c int) bool {
	first := &walk.from.clients[0]
	switch {
	case c == 0 || walk.shared && c == 2:
		return true
	case walk.shared && c == 1 && first.phase == released:
		return false
	}
	return walk.from.clients[c-1].phase != idle
}

// adopt yields the steps of client c after a majority has reported a lease of its lease ID from
// another client: c extends that lease, and withdraws its own proposals.
func (walk *walk) adopt(c int) {
	own := walk.from.clients[c]
	switch {
	case own.phase == proposing && bits.OnesCount8(own.acks) >= quorum:
		walk.change(step{kind: adopts, client: c, token: own.other}, func(own *client) {
			own.phase, own.acks, own.replies = adopting, 0, [nodes]uint8{}
		})
	case own.phase != adopting:
		return
	}
	if bits.OnesCount8(own.acks) >= quorum && own.phase == adopting {
		walk.take(step{kind: adoptionDone, client: c, token: own.other}, func(w *world) string { return walk.complete(w, c) })
	}
	if bits.OnesCount8(own.freed) >= quorum {
		walk.change(step{kind: adoptionFails, client: c, token: own.other}, (*client).withdraws)
	}
	if own.phase == adopting {
		walk.change(step{kind: givesUp, client: c}, (*client).withdraws)
	}
}

// comeBack yields new attempts of client c under the same lease ID after it gave up, with all
// tokens. Its withdrawal is still under way. Attempts under other lease IDs are those of other
// clients.
func (walk *walk) comeBack(c int) {
	own := walk.from.clients[c]
	if own.prev != 0 || own.gaveWay != 0 || c >= walk.returns {
		return
	}
	for token := walk.least(own.token, returnsUp); token <= walk.tokens; token++ {
		walk.change(step{kind: comesBack, client: c, token: token}, func(own *client) {
			own.phase, own.prev, own.token, own.gaveUp = proposing, own.token, token, true
			own.before |= walk.from.completed()
		})
	}
}

// least returns the least token that may follow an earlier one. If the rule is off, any token
// may.
func (p *protocol) least(earlier uint8, r rule) uint8 {
	if p.off(r) {
		return 1
	}
	return earlier + 1
}

// proposeAgain yields the second rounds of client c, for all tokens, with and without giving up
// the first.
func (walk *walk) proposeAgain(c int) {
	own := walk.from.clients[c]
	if own.prev != 0 || c >= walk.twice {
		return
	}
	for token := walk.least(own.token, roundsUp); token <= walk.tokens; token++ {
		for _, kind := range []kind{again, againGivingUp} {
			walk.change(step{kind: kind, client: c, token: token}, func(own *client) {
				own.prev, own.token, own.gaveUp = own.token, token, kind == againGivingUp
				own.other, own.acks = 0, 0
				if !walk.off(countExact) {
					own.replies = [nodes]uint8{}
				}
			})
		}
	}
}

// giveWay yields the step in which client c withdraws its token from the nodes that have accepted
// it, and waits for the others.
func (walk *walk) giveWay(c int) {
	own := walk.from.clients[c]
	if own.prev != 0 || own.gaveWay != 0 || c >= walk.giving {
		return
	}
	walk.change(step{kind: givesWay, client: c, token: own.token}, func(own *client) {
		for n, token := range own.replies {
			own.gaveWay |= bit(token != 0) << n
		}
		if !walk.off(retract) {
			own.replies = [nodes]uint8{}
		}
	})
}

// hold yields the steps of client c while it has its lease.
func (walk *walk) hold(c int) {
	own := walk.from.clients[c]
	if own.phase != holding && own.phase != extending {
		return
	}
	if walk.extend {
		walk.change(step{kind: sendExtension, client: c}, func(own *client) {
			own.phase, own.late, own.acks, own.staleNext = extending, false, 0, 0
			for i := range walk.from.clients {
				other := &walk.from.clients[i]
				own.late = own.late || other.completed && other.lease() > own.lease()
			}
		})
	}
	if own.phase == extending && bits.OnesCount8(own.acks) >= quorum {
		walk.take(step{kind: extensionDone, client: c}, func(w *world) string {
			own := &w.clients[c]
			own.phase, own.extended, own.acks, own.stale, own.staleNext = holding, true, 0, own.staleNext, 0
			if own.late && walk.final() {
				return extendedOld
			}
			return ""
		})
	}
	if walk.breaks && !own.broken {
		walk.change(step{kind: breaks, client: c}, func(own *client) { own.broken, own.freed = true, 0 })
	}
	if walk.release {
		walk.releases(c)
	}
	if walk.exclusive() {
		walk.change(step{kind: reachesDeadline, client: c}, func(own *client) {
			own.phase, own.acks, own.late, own.stale, own.staleNext = lost, 0, false, 0, 0
		})
	}
}

// releases yields the release by client c. If another client requested the same lease ID, it no
// longer relies on the lease either.
func (walk *walk) releases(c int) {
	walk.take(step{kind: releases, client: c}, func(w *world) string {
		for i := range w.clients {
			own := &w.clients[i]
			switch {
			case !walk.same(c, uint8(i+1)) || own.phase == idle || own.phase.over():
				continue
			case own.phase == holding || own.phase == extending:
				own.phase = released
			default:
				own.phase, own.replies, own.other = withdrawn, [nodes]uint8{}, 0
			}
			own.acks, own.freed, own.late, own.stale, own.staleNext = 0, 0, false, 0, 0
		}
		return ""
	})
}

// deliver yields the arrival at node n of each message that client c has sent. No message is ever
// used up, which models delay, repetition and loss.
func (walk *walk) deliver(c, n int) {
	own := walk.from.clients[c]
	if own.phase == idle {
		return
	}
	arrive := func(kind kind, token uint8, do func(w *world)) {
		walk.take(step{kind: kind, client: c, node: n, token: token}, func(w *world) string {
			do(w)
			return ""
		})
	}
	withdraw := func(kind kind, token uint8) {
		arrive(kind, token, func(w *world) { walk.withdraw(w, c, n, token) })
	}
	gaveWay := own.gaveWay>>n&1 == 1
	arrive(deliverProposal, own.token, func(w *world) {
		walk.propose(w, c, n, own.token, own.replaces(), own.phase == proposing && (own.prev != 0 || !gaveWay))
	})
	if own.prev != 0 {
		arrive(deliverFirst, own.prev, func(w *world) { walk.propose(w, c, n, own.prev, 0, false) })
	}
	if own.gaveUp || gaveWay {
		withdraw(deliverFirstWithdrawal, own.first())
	}
	if own.phase == extending {
		arrive(deliverExtension, own.lease(), func(w *world) {
			w.clients[c].acks |= bit(walk.extendAt(w, c, n, own.lease())) << n
		})
	}
	if own.broken {
		arrive(deliverBreak, own.lease(), func(w *world) {
			walk.endReleased(w, c, n, own.lease())
			w.clients[c].freed |= 1 << n
		})
	}
	if own.phase == adopting {
		arrive(deliverAdoption, own.other, func(w *world) {
			has, own := walk.extendAt(w, c, n, own.other), &w.clients[c]
			if (own.acks|own.freed)>>n&1 == 0 { // the first reply counts
				own.acks, own.freed = own.acks|bit(has)<<n, own.freed|bit(!has)<<n
			}
		})
	}
	if own.other != 0 && own.phase >= adopting {
		withdraw(deliverFirstWithdrawal, own.token)
	}
	if own.extended {
		arrive(deliverRepair, own.lease(), func(w *world) { walk.repair(w, c, n) })
	}
	if own.phase == released {
		arrive(deliverWithdrawal, own.lease(), func(w *world) {
			walk.endReleased(w, c, n, max(own.token, own.other))
			w.clients[c].freed |= 1 << n
		})
	}
	if own.phase == withdrawn {
		withdraw(deliverWithdrawal, own.token)
	}
}

// relied reports whether a client may rely on the lock of a node.
func (walk *walk) relied(at node) bool {
	for i := range walk.from.clients {
		switch c := &walk.from.clients[i]; {
		case !walk.same(i, at.owner):
		case c.phase == holding, c.phase == extending, c.phase == adopting && at.confirmed:
			return true
		case at.owner == uint8(i+1) && !c.phase.over():
			return true
		}
	}
	return false
}

// fault yields the faults of node n.
func (walk *walk) fault(n int) {
	at := walk.from.nodes[n]
	if at.owner != 0 && walk.from.expiries > 0 {
		walk.take(step{kind: expires, client: int(at.owner - 1), node: n}, func(w *world) string {
			w.nodes[n].free()
			w.expiries--
			return ""
		})
	}
	if at.owner != 0 && walk.exclusive() && !walk.relied(at) {
		walk.take(step{kind: expiresWhenOver, client: int(at.owner - 1), node: n}, func(w *world) string {
			w.nodes[n].free()
			return ""
		})
	}
	if walk.from.restarts > 0 {
		walk.take(step{kind: restarts, node: n}, func(w *world) string {
			walk.restart(w, n)
			return ""
		})
	}
	if walk.from.mayServe(n) {
		walk.take(step{kind: serves, node: n}, func(w *world) string {
			w.nodes[n].silent = false
			return ""
		})
	}
}
