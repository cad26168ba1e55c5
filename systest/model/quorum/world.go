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

// A phase is how far a client has come with its one acquisition.
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
	other     uint8        // token of a lease of the same ID from another client, as nodes reported it
	replies   [nodes]uint8 // token that each node accepted in the current round; 0: no reply
	acks      uint8        // nodes, as bits, that carried out the current extension; while proposing, that reported other
	freed     uint8        // nodes that carried out the release; while adopting, that lack the lease
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
	clientBits = 3 + 3 + 3 + 3 + 3 + 4
)

// pack returns the key of w. With symmetric, worlds that differ only in the
// order of the nodes have the same key.
func (w *world) pack(symmetric bool) key {
	var k key
	for n := range nodes {
		k[n] = w.column(n)
	}
	if symmetric {
		for _, pair := range [][2]int{{0, 1}, {1, 2}, {0, 1}} {
			if a, b := pair[0], pair[1]; k[a] > k[b] {
				k[a], k[b] = k[b], k[a]
			}
		}
	}
	for i := range w.clients {
		k[i] |= w.clients[i].scalars() << columnBits
	}
	k[0] |= (uint64(w.expiries) | uint64(w.restarts)<<3) << (columnBits + clientBits)
	return k
}

// A shifter writes numbers into a word, or reads them, least bits first.
type shifter struct {
	word uint64
	at   uint
}

func (s *shifter) put(value uint8, bits uint) {
	s.word |= uint64(value) << s.at
	s.at += bits
}

func (s *shifter) take(bits uint) uint8 {
	value := uint8(s.word & (1<<bits - 1))
	s.word >>= bits
	return value
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// column returns node n and the clients' state about it.
func (w *world) column(n int) uint64 {
	var s shifter
	node := &w.nodes[n]
	s.put(node.owner, 2)
	s.put(node.token, 3)
	s.put(node.counter, 4)
	s.put(node.floor, 4)
	s.put(bit(node.silent), 1)
	s.put(bit(node.confirmed), 1)
	for i := range w.clients {
		c := &w.clients[i]
		s.put(c.replies[n], 3)
		s.put(c.acks>>n&1, 1)
		s.put(c.freed>>n&1, 1)
		s.put(c.stale>>n&1, 1)
		s.put(c.staleNext>>n&1, 1)
		s.put(c.gaveWay>>n&1, 1)
	}
	return s.word
}

// scalars returns the state of c that does not depend on a node.
func (c *client) scalars() uint64 {
	var s shifter
	s.put(uint8(c.phase), 3)
	s.put(c.token, 3)
	s.put(c.prev, 3)
	s.put(c.before, 3)
	s.put(c.other, 3)
	s.put(bit(c.completed), 1)
	s.put(bit(c.gaveUp), 1)
	s.put(bit(c.extended), 1)
	s.put(bit(c.late), 1)
	return s.word
}

// unpack is the reverse of pack.
func (k key) unpack() world {
	var w world
	for n := range nodes {
		s := shifter{word: k[n]}
		w.nodes[n] = node{
			owner: s.take(2), token: s.take(3), counter: s.take(4), floor: s.take(4), silent: s.take(1) == 1,
			confirmed: s.take(1) == 1,
		}
		for i := range w.clients {
			c := &w.clients[i]
			c.replies[n] = s.take(3)
			c.acks |= s.take(1) << n
			c.freed |= s.take(1) << n
			c.stale |= s.take(1) << n
			c.staleNext |= s.take(1) << n
			c.gaveWay |= s.take(1) << n
		}
	}
	for i := range w.clients {
		s := shifter{word: k[i] >> columnBits}
		c := &w.clients[i]
		c.phase, c.token, c.prev, c.before, c.other = phase(s.take(3)), s.take(3), s.take(3), s.take(3), s.take(3)
		c.completed, c.gaveUp = s.take(1) == 1, s.take(1) == 1
		c.extended, c.late = s.take(1) == 1, s.take(1) == 1
	}
	s := shifter{word: k[0] >> (columnBits + clientBits)}
	w.expiries, w.restarts = s.take(3), s.take(2)
	return w
}
