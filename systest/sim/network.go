package sim

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"
)

// A network joins hosts to one server.
type network struct {
	server *server
	seed   uint64
	note   func(format string, args ...any)

	mu       sync.Mutex // guards the rest
	odds     odds
	paused   time.Time // end of the server's pause
	down     time.Time // time until which the server is down
	links    map[*link]struct{}
	lastLink int
	injected map[string]int // faults, by kind
}

// odds are the probabilities of faults of a message.
type odds struct {
	lose    float64 // the connection loses the request and everything after it
	mute    float64 // the connection loses the reply and everything after it
	replay  float64 // of a mute request: a proxy sends it again later
	twice   float64 // the request is executed twice at once
	notice  float64 // a message of publish and subscribe is dropped
	slow    float64 // the message takes up to slowest
	slowest time.Duration
}

// A host runs one client.
type host struct {
	name string
	net  *network
	cut  time.Time // end of a time without traffic; guarded by net.mu
	dead bool      // no more traffic at all
}

func newNetwork(server *server, seed uint64, note func(string, ...any)) *network {
	return &network{server: server, seed: seed, note: note, links: map[*link]struct{}{}, injected: map[string]int{}}
}

// count counts a fault and logs it.
func (n *network) count(kind string, format string, args ...any) {
	n.mu.Lock()
	n.injected[kind]++
	n.mu.Unlock()
	n.note(kind+" "+format, args...)
}

// Network time without faults, one way.
const (
	fastest = 50 * time.Microsecond
	usual   = time.Millisecond
)

// waits returns how long nothing will pass between a host and the server, or false if nothing ever
// will.
func (h *host) waits() (time.Duration, bool) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	return time.Until(h.cut), !h.dead
}

func (n *network) serverWaits() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Until(n.paused)
}

func (n *network) isDown() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Now().Before(n.down)
}

// dial makes a connection, as rueidis.ClientOption.DialCtxFn does.
func (h *host) dial(_ context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	n := h.net
	patience := time.Now().Add(d.Timeout)
	for wait, ever := h.waits(); wait > 0 || !ever; wait, ever = h.waits() {
		if left := time.Until(patience); !ever || wait > left {
			time.Sleep(left)
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errDialTimeout}
		}
		time.Sleep(wait)
	}
	time.Sleep(usual)
	if n.isDown() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lastLink++
	l := newLink(h, n.lastLink)
	n.links[l] = struct{}{}
	return l, nil
}

var errDialTimeout = errors.New("i/o timeout")

// crash breaks every connection: requests under way are lost.
func (n *network) crash(downFor time.Duration) {
	n.mu.Lock()
	n.down = time.Now().Add(downFor)
	var broken []*link
	for l := range n.links {
		broken = append(broken, l)
	}
	n.mu.Unlock()
	for _, l := range broken {
		l.lost()
	}
}

// calm ends all faults, except dead hosts and broken connections that neither end has noticed.
func (n *network) calm(hosts []*host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.odds = odds{}
	n.paused, n.down = time.Time{}, time.Time{}
	for _, h := range hosts {
		h.cut = time.Time{}
	}
}

// A fate is what the network does to one request.
type fate struct {
	delay, replyDelay time.Duration
	lose, mute, reset bool
	twice, second     bool // executed twice; second: the reply is to the second execution
	replay            bool
	replayAfter       time.Duration
}

// draw decides the fate of a request, always with the same number of draws.
func (n *network) draw(r *rand.Rand) fate {
	n.mu.Lock()
	o := n.odds
	n.mu.Unlock()
	hit := func(chance float64) bool { return r.Float64() < chance }
	f := fate{
		delay: between(r, fastest, usual), replyDelay: between(r, fastest, usual),
		lose: hit(o.lose), mute: hit(o.mute), reset: hit(0.5),
		twice: hit(o.twice), second: hit(0.5),
		replay: hit(o.replay), replayAfter: between(r, usual, 5*time.Second),
	}
	slow, slowReply := between(r, 0, max(o.slowest, 1)), between(r, 0, max(o.slowest, 1))
	if hit(o.slow) {
		f.delay += slow
	}
	if hit(o.slow) {
		f.replyDelay += slowReply
	}
	return f
}

// drawNotice decides the fate of a message of publish and subscribe.
func (n *network) drawNotice(r *rand.Rand) (delay time.Duration, dropped bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delay = between(r, fastest, usual)
	if slow := between(r, 0, max(n.odds.slowest, 1)); r.Float64() < n.odds.slow {
		delay += slow
	}
	dropped = r.Float64() < n.odds.notice
	if dropped {
		n.injected["news"]++
	}
	return delay, dropped
}

func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)))
}

func streamOf(seed uint64, id int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(id))) }
