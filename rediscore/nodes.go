package rediscore

import (
	"context"
	"fmt"
	"hash/crc32"
	"net"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// nodes remembers which node of a Redis Cluster serves which slots, so that the pending requests
// for a node go in one write. It is a hint: a node that no longer has a slot replies MOVED, and the
// client, which follows the redirection, makes the call again.
type nodes struct {
	conn    Conn
	life    context.Context
	looking atomic.Bool
	latest  atomic.Pointer[look]
}

// A look is the nodes' assignment of slots at a time.
type look struct {
	at   time.Time
	node [keys.Slots]*node // nil if unknown
}

// A node is a master. Two looks have different node values for it, with the same number.
type node struct {
	Pipeliner
	number uint32 // differs from the number of any slot
}

const (
	// lookPause is the time between two looks while there are requests. A look that is older than
	// lookAge is not used: a node that hangs and has been replaced receives no requests after that,
	// and a client closes its connection to a node that has left the cluster (rueidis: after 5 s).
	lookPause = time.Second
	lookAge   = 2 * lookPause
)

// age returns how old the latest look is.
func (n *nodes) age() time.Duration {
	if l := n.latest.Load(); l != nil {
		return time.Since(l.at)
	}
	return lookAge
}

// want starts a look unless the latest one is recent.
func (n *nodes) want() {
	if n != nil && n.age() >= lookPause && n.looking.CompareAndSwap(false, true) {
		go n.look() // ends after lookPause, or with the engine
	}
}

// nothing is the look that knows no nodes.
var nothing look

// known returns the latest look, or nothing if that is too old.
func (n *nodes) known() *look {
	if n == nil || n.age() >= lookAge {
		return &nothing
	}
	return n.latest.Load()
}

// route returns the route of a slot; see Store.Route.
func (l *look) route(slot uint32) uint32 {
	if n := l.node[slot]; n != nil {
		return n.number
	}
	return slot
}

// look asks any node. If the request fails, the next look does not follow at once.
func (n *nodes) look() {
	defer n.looking.Store(false)
	ctx, cancel := context.WithTimeout(n.life, lookPause)
	defer cancel()
	found := &look{at: time.Now()}
	reply, _ := n.conn.Do(ctx, Command{Words: []string{"CLUSTER", "SLOTS"}})
	if !found.read(reply, n.conn.Nodes()) {
		<-ctx.Done()
		return
	}
	n.latest.Store(found)
}

// read reads a node's reply to CLUSTER SLOTS, and reports whether it lists a usable node. It skips
// nodes to which there is no connection, and any that does not know its own host.
func (l *look) read(reply any, all map[string]Conn) (some bool) {
	ranges, _ := reply.([]any)
	for _, r := range ranges {
		var first, last int64
		var master []any
		if parts, _ := r.([]any); len(parts) < 3 || !form.Read(parts[:3], &first, &last, &master) || len(master) < 2 {
			continue
		}
		host, _ := master[0].(string)
		addr := net.JoinHostPort(host, fmt.Sprint(master[1]))
		p, ok := all[addr].(Pipeliner)
		if !ok {
			continue
		}
		m := &node{p, crc32.ChecksumIEEE([]byte(addr)) | 1<<31}
		for slot := max(first, 0); slot <= min(last, keys.Slots-1); slot++ {
			l.node[slot], some = m, true
		}
	}
	return some
}
