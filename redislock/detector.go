package redislock

import (
	"bufio"
	"context"
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

const (
	// minTimeout is the shortest time without a reply after which a connection is suspect and the
	// detector probes the address. A lease of three seconds that is renewed after one leaves time
	// for that and for a retry.
	minTimeout = 500 * time.Millisecond
	// maxTimeout is the longest such time, on a slow network. maxExtra is the longest if one
	// connection after another falls silent, as when the server pauses its clients: a new
	// connection does not help then.
	maxTimeout = 2 * time.Second
	maxExtra   = silence
	// recent is how long the detector remembers an address whose connections fell silent.
	recent = 10 * time.Second
	// grace is how much longer a suspect connection may take after the server has replied to a
	// probe. A busy server may reply to the probe first.
	grace = 100 * time.Millisecond
)

// A detector makes an engine's connections and closes dead ones. A connection is dead if a reply is
// overdue while the server replies to a probe on a new connection to the same address. Otherwise
// requests would go into a dead stream until the lease expires: after a firewall has lost its
// state, or while TCP waits long before it retransmits. If the server does not reply to a probe,
// its connections stay open.
type detector struct {
	life  context.Context // ends with close; it bounds the engine's own work
	end   context.CancelFunc
	limit time.Duration // unless zero, connections without a reply for this long are closed even if a probe gets no reply

	mu      sync.Mutex // guards the rest
	conns   map[*watchedConn]struct{}
	probing map[string]struct{}   // addresses with a probe in progress
	silent  map[string]silentAddr // by address
	closed  bool
}

// A silentAddr is an address whose connections fell silent.
type silentAddr struct {
	gaveUp time.Time     // when the detector last closed one of them
	extra  time.Duration // a longer timeout than usual
}

// timeout returns how long a reply may take.
func (p silentAddr) timeout(l *watchedConn) time.Duration {
	return max(p.extra, min(max(4*l.rtt, minTimeout), maxTimeout))
}

func newDetector(limit time.Duration) *detector {
	life, end := context.WithCancel(context.Background())
	return &detector{
		life: life, end: end, limit: limit, conns: map[*watchedConn]struct{}{}, probing: map[string]struct{}{}, silent: map[string]silentAddr{},
	}
}

// dial makes a connection for the engine. It ignores the context, because other callers may wait
// for the same connection.
func (b *detector) dial(_ context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	another := func() (net.Conn, error) { return connect(b.life, addr, d, config, b.connectLimit(addr, d)) }
	began := time.Now()
	conn, err := another()
	if err != nil {
		return nil, &dialError{err}
	}
	l := &watchedConn{Conn: conn, detector: b, addr: addr, connect: another, made: time.Now(), rtt: time.Since(began)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		_ = conn.Close()
		return nil, &dialError{driver.ErrClosed}
	}
	b.conns[l], l.suspect = struct{}{}, b.suspectLocked(addr)
	return l, nil
}

// connectLimit returns the time limit for connecting to an address.
func (b *detector) connectLimit(addr string, d *net.Dialer) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.suspectLocked(addr) {
		return b.limit / 4
	}
	return d.Timeout
}

// suspectLocked reports whether connections to addr fell silent recently.
func (b *detector) suspectLocked(addr string) bool {
	p, silent := b.silent[addr]
	return b.limit > 0 && silent && time.Since(p.gaveUp) < recent
}

// close closes all connections; later calls of dial fail.
func (b *detector) close() {
	b.end()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for l := range b.conns {
		l.cut()
	}
	clear(b.conns)
}

func (b *detector) remove(l *watchedConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, l)
}

// knows reports whether a connection is in use.
func (b *detector) knows(l *watchedConn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.conns[l]
	return ok
}

// timeout returns how long a reply may take.
func (b *detector) timeout(l *watchedConn) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.silent[l.addr].timeout(l)
}

// probe runs when a reply is overdue on l. It probes the address, and returns when the probe has
// ended. With a limit it also probes the other addresses: a machine that has failed may have had
// several, and an idle connection does not show that it is dead.
func (b *detector) probe(l *watchedConn) {
	var all sync.WaitGroup
	for _, one := range b.targets(l) {
		all.Go(func() { b.probeOne(one, one == l) })
	}
	all.Wait()
}

// targets returns l and, with a limit, one connection to each other address.
func (b *detector) targets(l *watchedConn) []*watchedConn {
	all := map[string]*watchedConn{l.addr: l}
	b.mu.Lock()
	defer b.mu.Unlock()
	for other := range b.conns {
		if b.limit > 0 && all[other.addr] == nil {
			all[other.addr] = other
		}
	}
	return slices.Collect(maps.Values(all))
}

// probeOne probes the address of l. If the server replies, it closes the connections whose replies
// are overdue. With a limit it also closes them if the server does not reply. owes says that a
// reply is overdue on l.
func (b *detector) probeOne(l *watchedConn, owes bool) {
	if !b.begin(l.addr) {
		return
	}
	defer b.finish(l.addr)
	switch answers := !l.isSuspect() && b.answers(l); {
	case answers && owes:
		select {
		case <-time.After(grace):
			b.giveUp(l.addr, 0)
		case <-b.life.Done():
		}
	case !answers && b.limit > 0 && owes:
		b.giveUp(l.addr, b.limit)
	case !answers && b.limit > 0:
		b.closeAll(l.addr)
	}
}

// begin reports whether no other probe of the address is in progress.
func (b *detector) begin(addr string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, asked := b.probing[addr]
	b.probing[addr] = struct{}{}
	return !asked
}

func (b *detector) finish(addr string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.probing, addr)
}

// answers sends PING on a new connection to the address of l, and reports whether the server
// replies. A refusal for lack of a password or a right counts as a reply.
func (b *detector) answers(l *watchedConn) bool {
	conn, err := l.connect()
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(b.life, func() { _ = conn.Close() })()
	limit := silence
	if b.limit > 0 {
		limit = b.limit / 2
	}
	_ = conn.SetDeadline(time.Now().Add(limit))
	if _, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return false
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return false
	}
	for _, served := range []string{"+PONG", "-NOAUTH", "-NOPERM"} {
		if strings.HasPrefix(answer, served) {
			return true
		}
	}
	return false
}

// giveUp closes the connections to an address whose replies are overdue, and have been for at least
// silent. If one of them is new and replaced another closed one, the next connections get a longer
// timeout.
func (b *detector) giveUp(addr string, silent time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, gaveUp := b.silent[addr], false
	next := silentAddr{gaveUp: time.Now()}
	for l := range b.conns {
		if l.addr != addr {
			continue
		}
		timeout := max(p.timeout(l), silent)
		if !l.giveUp(timeout) {
			continue
		}
		delete(b.conns, l)
		gaveUp = true
		if b.limit == 0 && l.made.After(p.gaveUp) && !p.gaveUp.IsZero() && time.Since(l.made) < 3*timeout {
			next.extra = min(2*timeout, maxExtra)
		}
	}
	if gaveUp {
		b.silent[addr] = next
	}
}

// closeAll closes all connections to an address.
func (b *detector) closeAll(addr string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.conns {
		if l.addr == addr {
			l.cut()
			delete(b.conns, l)
		}
	}
	b.silent[addr] = silentAddr{gaveUp: time.Now()}
}
