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

// nodes know which node of a Redis Cluster has which slots, so that what is pending for a
// node goes in one write. This is a hint: a node that does not have a slot any more replies
// MOVED, and the client, which follows, makes the call again.
type nodes struct {
	conn    Conn
	life    context.Context
	looking atomic.Bool
	latest  atomic.Pointer[look]
}

// A look is what the nodes have said of the slots.
type look struct {
	at   time.Time
	node [keys.Slots]*node // nil if it is not known
}

// A node is a master. The nodes of two looks are two, with the same number.
type node struct {
	Pipeliner
	number uint32 // no slot's
}

const (
	// lookPause is the time between two looks, while there are requests. One that is older
	// than lookAge is not used: a node that hangs and was replaced gets no request for longer,
	// and a client ends its connection to a node that has left the cluster (rueidis: after 5 s).
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

// want has the nodes asked, unless that was not long ago.
func (n *nodes) want() {
	if n != nil && n.age() >= lookPause && n.looking.CompareAndSwap(false, true) {
		go n.look() // ends after lookPause, or with the engine
	}
}

// nothing is a look after which no node is known.
var nothing look

// known returns the latest look, unless that is too old.
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

// look asks any node. One that does not answer is not the next at once.
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

// read reads what a node has replied, and reports whether it names a node. It leaves out those
// to which there is no connection, and a node that does not know its own host.
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
