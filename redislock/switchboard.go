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
	// minPatience is how long an answer may be owed, at least, before a new
	// connection to the same place is tried: a lease of three seconds, renewed
	// after one, has time for that and for a repeat.
	minPatience = 500 * time.Millisecond
	// maxPatience is the same where the network is slow. maxReserve is that
	// where connections go silent one after the other, as with a server that
	// has paused its clients: then a new one does not help.
	maxPatience = 2 * time.Second
	maxReserve  = silence
	// recent is how long an address to which connections went silent is
	// remembered for that.
	recent = 10 * time.Second
	// grace is how long a silent connection still has when a new one is
	// answered: a server that was busy answers that one perhaps first.
	grace = 100 * time.Millisecond
)

// A switchboard makes the connections of an engine and gives up those that owe
// an answer while a new connection to the same place is answered: behind a
// firewall that has lost its state, and where TCP waits for long before it
// sends again what was lost, requests would go into a dead stream until the
// end of the lease. A server that answers nobody loses no connection by this.
type switchboard struct {
	life  context.Context // ends with close; it bounds what runs on the engine's own behalf
	end   context.CancelFunc
	haste time.Duration // unless zero, connections that are silent for this long are given up in any case

	mu     sync.Mutex // guards the rest
	lines  map[*line]struct{}
	asked  map[string]struct{} // addresses to which a new connection is tried
	places map[string]place    // addresses to which connections went silent
	closed bool
}

// A place is an address to which connections went silent.
type place struct {
	gaveUp  time.Time     // when some of them were given up last
	reserve time.Duration // more patience than usual
}

// patience is how long a connection may owe an answer.
func (p place) patience(l *line) time.Duration {
	return max(p.reserve, min(max(4*l.rtt, minPatience), maxPatience))
}

func newSwitchboard(haste time.Duration) *switchboard {
	life, end := context.WithCancel(context.Background())
	return &switchboard{
		life: life, end: end, haste: haste, lines: map[*line]struct{}{}, asked: map[string]struct{}{}, places: map[string]place{},
	}
}

// dial makes a connection on the engine's behalf, whatever becomes of the
// context: a caller that gives up must not spoil the connection for the others
// who wait for it.
func (b *switchboard) dial(_ context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	another := func() (net.Conn, error) { return connect(b.life, addr, d, config, b.limit(addr, d)) }
	began := time.Now()
	conn, err := another()
	if err != nil {
		return nil, &dialError{err}
	}
	l := &line{Conn: conn, board: b, addr: addr, connect: another, made: time.Now(), rtt: time.Since(began)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		_ = conn.Close()
		return nil, &dialError{driver.ErrClosed}
	}
	b.lines[l], l.hurried = struct{}{}, b.hurriedLocked(addr)
	return l, nil
}

// limit bounds making a connection to an address.
func (b *switchboard) limit(addr string, d *net.Dialer) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hurriedLocked(addr) {
		return b.haste / 4
	}
	return d.Timeout
}

// hurriedLocked reports whether an address is, in haste, hardly worth a try.
func (b *switchboard) hurriedLocked(addr string) bool {
	p, silent := b.places[addr]
	return b.haste > 0 && silent && time.Since(p.gaveUp) < recent
}

// close breaks all connections, and there are no more.
func (b *switchboard) close() {
	b.end()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for l := range b.lines {
		l.cut()
	}
	clear(b.lines)
}

func (b *switchboard) remove(l *line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.lines, l)
}

// knows reports whether a connection is in use.
func (b *switchboard) knows(l *line) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.lines[l]
	return ok
}

// patience is how long a connection may owe an answer.
func (b *switchboard) patience(l *line) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.places[l.addr].patience(l)
}

// doubt is called where an answer is overdue. It tries a new connection to the
// same place, and returns when that has come to an end. In haste it asks the
// other places as well: a machine that is gone may have had several, and those
// to which nothing is sent would be missed later.
func (b *switchboard) doubt(l *line) {
	var all sync.WaitGroup
	for _, one := range b.suspects(l) {
		all.Go(func() { b.verify(one, one == l) })
	}
	all.Wait()
}

// suspects returns l and, in haste, one connection to each other place.
func (b *switchboard) suspects(l *line) []*line {
	all := map[string]*line{l.addr: l}
	b.mu.Lock()
	defer b.mu.Unlock()
	for other := range b.lines {
		if b.haste > 0 && all[other.addr] == nil {
			all[other.addr] = other
		}
	}
	return slices.Collect(maps.Values(all))
}

// verify tries a new connection to where l leads, and gives those up that are
// there if they owe an answer and it has one; or, in haste, if it has none.
func (b *switchboard) verify(l *line, owes bool) {
	if !b.begin(l.addr) {
		return
	}
	defer b.finish(l.addr)
	switch answers := !l.isHurried() && b.answers(l); {
	case answers && owes:
		select {
		case <-time.After(grace):
			b.giveUp(l.addr, 0)
		case <-b.life.Done():
		}
	case !answers && b.haste > 0 && owes:
		b.giveUp(l.addr, b.haste)
	case !answers && b.haste > 0:
		b.hangUp(l.addr)
	}
}

// begin reports whether nobody else tries a new connection to the address.
func (b *switchboard) begin(addr string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, asked := b.asked[addr]
	b.asked[addr] = struct{}{}
	return !asked
}

func (b *switchboard) finish(addr string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.asked, addr)
}

// answers makes a new connection to where l leads, and reports whether the
// server serves it. A server that wants a password says so, which is as good.
func (b *switchboard) answers(l *line) bool {
	conn, err := l.connect()
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(b.life, func() { _ = conn.Close() })()
	limit := silence
	if b.haste > 0 {
		limit = b.haste / 2
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

// giveUp ends the connections to an address that still owe an answer, and that
// for the given time at least. If one of
// them is young, and was made in place of one that was given up, it has more
// patience with the next.
func (b *switchboard) giveUp(addr string, silent time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, gaveUp := b.places[addr], false
	next := place{gaveUp: time.Now()}
	for l := range b.lines {
		if l.addr != addr {
			continue
		}
		patience := max(p.patience(l), silent)
		if !l.giveUp(patience) {
			continue
		}
		delete(b.lines, l)
		gaveUp = true
		if b.haste == 0 && l.made.After(p.gaveUp) && !p.gaveUp.IsZero() && time.Since(l.made) < 3*patience {
			next.reserve = min(2*patience, maxReserve)
		}
	}
	if gaveUp {
		b.places[addr] = next
	}
}

// hangUp ends the connections to an address, whatever they owe.
func (b *switchboard) hangUp(addr string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.lines {
		if l.addr == addr {
			l.cut()
			delete(b.lines, l)
		}
	}
	b.places[addr] = place{gaveUp: time.Now()}
}
