package quorum

import "math/bits"

// A rule is something that nodes and clients keep to.
type rule uint8

const (
	noRule rule = iota
	// acceptAbove: a node accepts a token only above its counter.
	acceptAbove
	// countExact: a client counts a node only for the token that the node
	// accepted, not for another of the same round of messages or an earlier.
	countExact
	// writeBack: a node that cannot accept refuses, so that a majority has the
	// token that the client ends with. Without it nodes grant tokens of their
	// own and the client takes the greatest: one round of maxima.
	writeBack
	// matchToken: a node takes a proposal for a new one of the lock's owner only
	// if it replaces the token that the node has. Without it a node looks at
	// the owner only.
	matchToken
	// withdrawToken: a withdrawal frees the lock only if its token is not
	// greater than the one withdrawn.
	withdrawToken
	// repairBelow: a lost lock is repaired only if the counter is not above its
	// token.
	repairBelow
	// releaseLifts: a release lifts the counter above the token.
	releaseLifts
	// keepQuiet: a node that lost its memory is in quarantine.
	keepQuiet
	// clockFloor: what a node accepts is not below its clock, so that what it
	// accepts after the quarantine is above all that it forgot.
	clockFloor
	// retract: a client does not count a node from which it withdraws what the
	// node has accepted.
	retract
	// roundsUp: a second round proposes a greater token than the first.
	roundsUp
	// returnsUp: a client that gave up, and comes back under its lease ID while
	// its withdrawal is under way, proposes a greater token than before.
	returnsUp
)

// A protocol is a system of clients and nodes within bounds.
type protocol struct {
	clients  int
	tokens   uint8 // proposals are 1 to tokens; every choice is tried
	expiries uint8 // how many locks expire although their owners trust them
	restarts uint8 // how many times a node loses all it knows

	twice    int  // so many clients may propose twice
	giving   int  // so many may give way, and hear the other nodes out
	returns  int  // so many may come back after they gave up, under the same lease ID
	extend   bool // holders may extend
	release  bool // holders may release
	uneven   bool // counters may be unequal at first
	ordered  bool // the numbers of the nodes matter; traces need it
	switched rule // the rule that is off
}

// exclusive says that no lock expires while its owner trusts it, so that no
// two clients may hold the lock at once.
func (p *protocol) exclusive() bool { return p.expiries == 0 }

// final says that an old extension must not succeed. That a lock is neither
// forgotten nor expires early is too much to ask of it at once: it takes one of
// the two.
func (p *protocol) final() bool { return p.expiries == 0 || p.restarts == 0 }

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

// propose lets node n see a proposal of client c, for the first time or again.
// The client hears the answer if it still waits for it.
func (p *protocol) propose(w *world, c, n int, token, replaces uint8, heard bool) {
	node, own := &w.nodes[n], w.nodes[n].owner == uint8(c+1)
	least := max(node.counter, node.floor)
	switch {
	case own && node.token == token: // a repeat
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
	node.owner, node.token, node.counter = uint8(c+1), token, max(node.counter, 2*token)
	if heard {
		w.clients[c].replies[n] = token
	}
}

// repair lets node n see that client c has extended its lease, which the node
// may lack.
func (p *protocol) repair(w *world, c, n int) {
	node, token := &w.nodes[n], w.clients[c].token
	own := node.owner == uint8(c+1)
	switch {
	case node.owner != 0 && !own, node.silent:
		return
	case node.counter > 2*token && !p.off(repairBelow), own && node.token > token:
		return
	}
	node.owner, node.token, node.counter = uint8(c+1), token, max(node.counter, 2*token)
}

// withdraw lets node n see that client c wants none of the tokens up to token.
func (p *protocol) withdraw(w *world, c, n int, token uint8) {
	node := &w.nodes[n]
	if node.owner == uint8(c+1) && (node.token <= token || p.off(withdrawToken)) {
		node.owner, node.token = 0, 0
	}
	if !p.off(releaseLifts) {
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

// mayServe reports whether the quarantine of node n can be over: it is longer
// than any lease, so who relied on what the node had before is over as well,
// or has extended since.
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
	extendedOld = "an extension succeeded that was sent after a later client had completed"
	cameBack    = "a lease that a majority had released is on a majority again"
)

// complete makes client c a holder and says which property that breaks.
func (p *protocol) complete(w *world, c int) string {
	own := &w.clients[c]
	if p.off(writeBack) {
		for _, token := range own.replies {
			own.token = max(own.token, token)
		}
	}
	broken := ""
	for i := range w.clients {
		other := &w.clients[i]
		switch {
		case !other.completed:
		case other.token == own.token:
			broken = sameToken
		case own.before>>i&1 == 1 && other.token > own.token:
			broken = smaller
		case p.exclusive() && (other.phase == holding || other.phase == extending):
			broken = twoHolders
		}
	}
	own.phase, own.completed, own.replies = holding, true, [nodes]uint8{}
	return broken
}

// back says whether a lease that was released is there again.
func (w *world) back() string {
	for i := range w.clients {
		if bits.OnesCount8(w.clients[i].freed) < quorum {
			continue
		}
		count := 0
		for n := range w.nodes {
			if w.nodes[n].owner == uint8(i+1) {
				count++
			}
		}
		if count >= quorum {
			return cameBack
		}
	}
	return ""
}
