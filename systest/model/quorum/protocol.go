package quorum

import "math/bits"

// A rule is a rule that nodes and clients follow.
type rule uint8

const (
	noRule rule = iota
	// acceptAbove: a node accepts a token only above its counter.
	acceptAbove
	// countExact: a client counts a node only for the token that the node accepted, not for
	// another token of the same round or an earlier one.
	countExact
	// writeBack: a node that cannot accept a proposal refuses, so that a majority has the token
	// with which the client ends. Without the rule a node grants a token of its own and the client
	// takes the greatest: one round of maxima.
	writeBack
	// matchToken: a node accepts a new proposal of the lock's owner only if it replaces the token
	// that the node has. Without it a node checks only the owner.
	matchToken
	// withdrawToken: a withdrawal frees the lock only if the lock's token is not greater than the
	// withdrawn token.
	withdrawToken
	// repairBelow: a lost lock is repaired only if the counter is not above its token.
	repairBelow
	// releaseLifts: a release lifts the counter above the token.
	releaseLifts
	// keepQuiet: a node that lost its memory is in quarantine.
	keepQuiet
	// clockFloor: a node accepts no token below its clock, so that all tokens that it accepts
	// after the quarantine are above those that it forgot.
	clockFloor
	// retract: a client does not count a node from which it withdraws the accepted token.
	retract
	// roundsUp: a second round proposes a greater token than the first.
	roundsUp
	// returnsUp: a client that gave up and comes back under its lease ID, while its withdrawal is
	// under way, proposes a greater token than before.
	returnsUp
	// ownWithdrawals: a node frees the lock for a client that gave up only if that client has
	// proposed the lock, and the lock is not confirmed. Without it a node checks only the lease
	// ID.
	ownWithdrawals
	// ownProposals: a node accepts a repeat, or a proposal that replaces the lock, only from the
	// client that has proposed the lock. Without it a node checks only the lease ID.
	ownProposals
	// confirms: an extension confirms the lock.
	confirms
)

// A protocol is a system of clients and nodes within bounds.
type protocol struct {
	clients  int
	tokens   uint8 // proposals are 1 to tokens; every choice is tried
	expiries uint8 // how many locks may expire although their owners trust them
	restarts uint8 // how many times a node may lose its memory

	twice    int  // how many clients may propose twice
	giving   int  // how many may give way, and wait for the other nodes
	returns  int  // how many may come back under the same lease ID after they gave up
	extend   bool // holders may extend
	release  bool // holders may release
	breaks   bool // the lease of a holder may be broken
	shared   bool // the first two clients request one lease ID, for the same caller
	uneven   bool // counters may be unequal at first
	ordered  bool // the numbers of the nodes matter; traces need it
	switched rule // the rule that is off
}

// exclusive is the property that no lock expires while its owner trusts it, so that no
// two clients hold the lock at once.
func (p *protocol) exclusive() bool { return p.expiries == 0 }

// final is the property that an old extension must not succeed. It cannot hold for a lock that
// may both be forgotten and end early, because it expires or a break has reached a minority.
func (p *protocol) final() bool { return p.expiries == 0 && !p.breaks || p.restarts == 0 }

func (p *protocol) off(r rule) bool { return p.switched == r }

func (p *protocol) initial() []key {
	var keys []key
	for a := range uint8(3) {
		w := world{expiries: p.expiries, restarts: p.restarts}
		if a > 0 { // 2: one node is ahead; 1: two are
			w.nodes[2].counter = 4
			w.nodes[1].counter = 4 * (a & 1)
		}
		keys = append(keys, w.pack(!p.ordered))
		if !p.uneven {
			break
		}
	}
	return keys
}

// same reports whether owner, as a node has it, has the lease ID of client c.
func (p *protocol) same(c int, owner uint8) bool {
	return owner == uint8(c+1) || p.shared && c < 2 && owner != 0 && owner <= 2
}

// propose delivers a proposal of client c to node n, for the first time or again. The client gets
// the reply if it still waits for it.
func (p *protocol) propose(w *world, c, n int, token, replaces uint8, heard bool) {
	node := &w.nodes[n]
	own := node.owner == uint8(c+1) && !node.confirmed || p.off(ownProposals) && p.same(c, node.owner)
	least := max(node.counter, node.floor)
	switch {
	case own && node.token == token: // a repeat
		if heard {
			w.clients[c].replies[n] = token
		}
		return
	case !own && p.same(c, node.owner):
		if heard {
			w.clients[c].told(n, node.token)
		}
		return
	case node.owner != 0 && !own, node.silent:
		return
	case own && p.off(matchToken):
	case own && node.token > replaces:
		return
	case 2*token > least, p.off(acceptAbove):
	case p.off(writeBack) && least/2 < p.tokens:
		token = least/2 + 1
	default:
		return
	}
	node.owner, node.token, node.counter, node.confirmed = uint8(c+1), token, max(node.counter, 2*token), false
	if heard {
		w.clients[c].replies[n] = token
	}
}

// told notes that node n has reported a lease of the same ID from another client. If there are
// several such leases, the client may hear of any of them first, and ignores the others.
func (c *client) told(n int, token uint8) {
	if c.other == 0 || c.other == token {
		c.other, c.acks = token, c.acks|1<<n
	}
}

// extendAt delivers to node n the extension of the lease with token, which client c has or wants.
// It reports whether the node has the lease.
func (p *protocol) extendAt(w *world, c, n int, token uint8) bool {
	node := &w.nodes[n]
	if !p.same(c, node.owner) || node.token != token {
		return false
	}
	node.confirmed = p.shared && !p.off(confirms)
	return true
}

// repair delivers to node n the message that client c has extended its lease, which the node may
// lack.
func (p *protocol) repair(w *world, c, n int) {
	node, token := &w.nodes[n], w.clients[c].lease()
	own := p.same(c, node.owner)
	switch {
	case node.owner != 0 && !own, node.silent:
		return
	case node.counter > 2*token && !p.off(repairBelow), own && node.token > token:
		return
	}
	node.owner, node.token, node.counter = uint8(c+1), token, max(node.counter, 2*token)
	node.confirmed = p.shared && !p.off(confirms)
}

// withdraw delivers to node n the withdrawal of all tokens up to token that client c has proposed
// itself.
func (p *protocol) withdraw(w *world, c, n int, token uint8) {
	node := &w.nodes[n]
	mine := node.owner == uint8(c+1) && !node.confirmed || p.off(ownWithdrawals) && p.same(c, node.owner)
	p.end(node, mine && (node.token <= token || p.off(withdrawToken)), token)
}

// endReleased delivers to node n the message that client c has released its lease ID.
func (p *protocol) endReleased(w *world, c, n int, token uint8) {
	node := &w.nodes[n]
	p.end(node, p.same(c, node.owner), token)
}

// end frees the node's lock if ends, and lifts the counter above token, unless the lock stays
// with exactly this token.
func (p *protocol) end(node *node, ends bool, token uint8) {
	stays := !ends && p.shared && node.owner != 0 && node.token == token
	if ends {
		token = max(token, node.token)
		node.free()
	}
	if !p.off(releaseLifts) && !stays {
		node.counter = max(node.counter, 2*token+1)
	}
}

// restart makes node n forget everything.
func (p *protocol) restart(w *world, n int) {
	floor := max(w.nodes[n].counter, w.nodes[n].floor)
	if p.off(clockFloor) || p.off(keepQuiet) {
		floor = 0
	}
	w.nodes[n] = node{floor: floor, silent: !p.off(keepQuiet)}
	w.restarts--
	for i := range w.clients {
		w.clients[i].freed &^= 1 << n
		if c := &w.clients[i]; c.phase != idle && !c.phase.over() {
			c.stale |= 1 << n
			if c.phase == extending {
				c.staleNext |= 1 << n
			}
		}
	}
}

// mayServe reports whether the quarantine of node n can have ended. It is longer than any lease,
// so leases from before have ended as well, or were extended since.
func (w *world) mayServe(n int) bool {
	for i := range w.clients {
		if c := &w.clients[i]; c.stale>>n&1 == 1 && !c.phase.over() {
			return false
		}
	}
	return w.nodes[n].silent
}

// votes counts the nodes that a client may count for its token.
func (p *protocol) votes(c *client) int {
	count := 0
	for _, token := range c.replies {
		if token == c.token || token != 0 && (p.off(countExact) || p.off(writeBack)) {
			count++
		}
	}
	return count
}

// What must never happen.
const (
	sameToken   = "two acquisitions have the same token"
	smaller     = "an acquisition that began after another had completed has the smaller token"
	twoHolders  = "two clients hold the lock, and no lock expired early"
	twoLeases   = "one lease ID has two leases at once"
	extendedOld = "an extension succeeded that was sent after a later client had completed"
	cameBack    = "a lease that was ended on a majority is on a majority again"
)

// complete makes client c a holder and returns the property that this breaks.
func (p *protocol) complete(w *world, c int) string {
	own := &w.clients[c]
	if p.off(writeBack) {
		for _, token := range own.replies {
			own.token = max(own.token, token)
		}
	}
	if own.phase != adopting {
		own.other = 0
	}
	broken := ""
	for i := range w.clients {
		other := &w.clients[i]
		switch {
		case !other.completed:
		case other.lease() == own.lease():
			if !p.same(c, uint8(i+1)) { // otherwise it is the same lease
				broken = sameToken
			}
		case own.before>>i&1 == 1 && other.lease() > own.lease():
			broken = smaller
		case p.exclusive() && p.same(c, uint8(i+1)) && (other.phase == holding || other.phase == extending):
			broken = twoLeases
		case p.exclusive() && (other.phase == holding || other.phase == extending) && !other.broken:
			broken = twoHolders
		}
	}
	own.phase, own.completed, own.replies, own.acks, own.freed = holding, true, [nodes]uint8{}, 0, 0
	return broken
}

// back returns the property that is broken if a released or broken lease is back on a majority, or "".
func (p *protocol) back(w *world) string {
	for i := range w.clients {
		c := &w.clients[i]
		if c.phase != released && !c.broken || bits.OnesCount8(c.freed) < quorum {
			continue
		}
		count := 0
		for n := range w.nodes {
			if w.nodes[n].owner == uint8(i+1) || p.same(i, w.nodes[n].owner) && w.nodes[n].token == c.lease() {
				count++
			}
		}
		if count >= quorum {
			return cameBack
		}
	}
	return ""
}
