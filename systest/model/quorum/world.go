package quorum

// The bounds of the state encoding.
const (
	nodes      = 3
	quorum     = nodes/2 + 1
	maxClients = 3
	maxToken   = 7
)

// A node is one member of the quorum, with its state of one name.
type node struct {
	owner   uint8 // the number of the client with the lock, plus 1; 0 if it is free
	token   uint8 // of the lock
	counter uint8 // twice the greatest token accepted, plus 1 if it was released
	floor   uint8 // stands for the clock after the counter was lost: no token up to it is accepted
	silent  bool  // in quarantine

	// confirmed marks a lock that was extended, which no client may withdraw. It is recorded only
	// if two clients share a lease ID.
	confirmed bool
}

func (n *node) free() { n.owner, n.token, n.confirmed = 0, 0, false }

// A phase is how far the one acquisition of a client has progressed.
type phase uint8

const (
	idle      phase = iota
	proposing       // one round or two
	adopting        // extending a lease of the same ID that a majority has from another client
	holding         // completed, and not known to have ended
	extending       // holding, with an extension under way
	released        // it was held
	withdrawn       // given up before it was held
	lost            // it was held until the deadline
)

// over reports whether the client trusts no lease and never will.
func (p phase) over() bool { return p >= released }

// A client makes one acquisition: it proposes, may extend, and ends.
type client struct {
	phase     phase
	token     uint8        // proposed last
	prev      uint8        // proposed in the first round or attempt, if there was a second; else 0
	before    uint8        // clients, as bits, that had completed when this one began
	completed bool         // it was held
	gaveUp    bool         // the first round or attempt was withdrawn before the second
	gaveWay   uint8        // nodes from which the first round was withdrawn while it went on elsewhere
	extended  bool         // an extension succeeded: nodes that may lack the lock are repaired
	late      bool         // the current extension was sent after a later client had completed
	broken    bool         // another client has broken the lease; this one may not know yet
	other     uint8        // token of a lease of the same ID from another client, as nodes reported it
	replies   [nodes]uint8 // token that each node accepted in the current round; 0: no reply
	acks      uint8        // nodes, as bits, that executed the current extension; while proposing, that reported other
	freed     uint8        // nodes that executed the release or the break; while adopting, that lack the lease
	stale     uint8        // nodes that restarted since the lease was last known to be good
	staleNext uint8        // nodes that restarted since the current extension was sent
}

// lease returns the token that the client holds or held the lock with.
func (c *client) lease() uint8 {
	if c.other != 0 {
		return c.other
	}
	return c.token
}

// replaces returns the greatest token before the current one that no longer counts, and that a
// node may replace.
func (c *client) replaces() uint8 {
	if c.prev < c.token {
		return c.prev
	}
	return 0
}

// first returns the token of the first round.
func (c *client) first() uint8 {
	if c.prev != 0 {
		return c.prev
	}
	return c.token
}

// withdraws makes a client without a lease give up.
func (c *client) withdraws() {
	c.phase, c.replies, c.other, c.acks, c.freed = withdrawn, [nodes]uint8{}, 0, 0, 0
}

// A world is a state of the whole system.
type world struct {
	nodes    [nodes]node
	clients  [maxClients]client
	expiries uint8 // how many may still happen
	restarts uint8
}

// The bits of one word of a key: the view of one node, then one client, then the remaining
// faults.
const (
	nodeBits   = 2 + 3 + 4 + 4 + 1 + 1
	viewBits   = 3 + 1 + 1 + 1 + 1 + 1
	columnBits = nodeBits + maxClients*viewBits
	clientBits = 3 + 3 + 3 + 3 + 3 + 5
)

// pack returns the key of w. With symmetric, worlds that differ only in the order of the nodes have
// the same key.
func (w *world) pack(symmetric bool) key {
	var k key
	for n := range nodes {
		s := &shifter{}
		w.column(s, n)
		k[n] = s.word
	}
	if symmetric {
		for _, pair := range [][2]int{{0, 1}, {1, 2}, {0, 1}} {
			if a, b := pair[0], pair[1]; k[a] > k[b] {
				k[a], k[b] = k[b], k[a]
			}
		}
	}
	for i := range w.clients {
		s := &shifter{word: k[i], at: columnBits}
		w.clients[i].scalars(s)
		k[i] = s.word
	}
	s := &shifter{word: k[0], at: columnBits + clientBits}
	w.faults(s)
	k[0] = s.word
	return k
}

// A shifter writes numbers into a word, or reads them, least bits first.
type shifter struct {
	word  uint64
	at    uint
	reads bool
}

func (s *shifter) number(value *uint8, bits uint) {
	if s.reads {
		*value = uint8(s.word >> s.at & (1<<bits - 1))
	} else {
		s.word |= uint64(*value) << s.at
	}
	s.at += bits
}

func (s *shifter) flag(value *bool) {
	b := bit(*value)
	s.number(&b, 1)
	*value = b == 1
}

// bitOf is number for bit n of a set.
func (s *shifter) bitOf(set *uint8, n int) {
	b := *set >> n & 1
	s.number(&b, 1)
	*set = *set&^(1<<n) | b<<n
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// column writes or reads node n, and the clients' state about it.
func (w *world) column(s *shifter, n int) {
	node := &w.nodes[n]
	s.number(&node.owner, 2)
	s.number(&node.token, 3)
	s.number(&node.counter, 4)
	s.number(&node.floor, 4)
	s.flag(&node.silent)
	s.flag(&node.confirmed)
	for i := range w.clients {
		c := &w.clients[i]
		s.number(&c.replies[n], 3)
		s.bitOf(&c.acks, n)
		s.bitOf(&c.freed, n)
		s.bitOf(&c.stale, n)
		s.bitOf(&c.staleNext, n)
		s.bitOf(&c.gaveWay, n)
	}
}

// scalars writes or reads the state of c that does not depend on a node.
func (c *client) scalars(s *shifter) {
	s.number((*uint8)(&c.phase), 3)
	s.number(&c.token, 3)
	s.number(&c.prev, 3)
	s.number(&c.before, 3)
	s.number(&c.other, 3)
	s.flag(&c.completed)
	s.flag(&c.gaveUp)
	s.flag(&c.extended)
	s.flag(&c.late)
	s.flag(&c.broken)
}

// faults writes or reads how many faults may still happen.
func (w *world) faults(s *shifter) {
	s.number(&w.expiries, 3)
	s.number(&w.restarts, 2)
}

// unpack is the reverse of pack.
func (k key) unpack() (w world) {
	for n := range nodes {
		w.column(&shifter{word: k[n], reads: true}, n)
	}
	for i := range w.clients {
		w.clients[i].scalars(&shifter{word: k[i], at: columnBits, reads: true})
	}
	w.faults(&shifter{word: k[0], at: columnBits + clientBits, reads: true})
	return w
}
