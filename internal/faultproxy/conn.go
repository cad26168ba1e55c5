package faultproxy

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A conn is one client's connection and the corresponding connection to the server. Four
// goroutines serve it: a reader and a writer for each direction. So delays do not add up: each
// message is delayed from when it was read, even if earlier messages are still delayed.
type conn struct {
	proxy  *Proxy
	number int
	client *net.TCPConn
	server *net.TCPConn

	toServer chan message
	awaited  chan Action // the actions of requests without a reply, in order
	toClient chan message

	requests *wobble
	replies  *wobble

	subscribed atomic.Bool // the client has used subscriptions
	lost       atomic.Bool // the connection is a black hole

	dead     chan struct{} // closed by kill
	killOnce sync.Once
}

// A message is a request or a reply on the wire.
type message struct {
	raw  []byte
	due  time.Time // when it arrives
	hold <-chan struct{}
	fate Fate // only for a reply
}

// inFlight is how many messages may be on the wire in one direction. A sender of more has to wait,
// as behind full buffers.
const inFlight = 4096

// put puts an item on the wire. It returns false if the connection is killed first.
func put[T any](c *conn, wire chan<- T, item T) bool {
	select {
	case wire <- item:
		return true
	case <-c.dead:
		return false
	}
}

// take takes the oldest item from the wire. It returns false when there will be none, or if the
// connection is killed first.
func take[T any](c *conn, wire <-chan T) (item T, ok bool) {
	select {
	case item, ok = <-wire:
	case <-c.dead:
	}
	return item, ok
}

func newConn(p *Proxy, number int, client, server *net.TCPConn) *conn {
	return &conn{
		proxy: p, number: number, client: client, server: server,
		toServer: make(chan message, inFlight),
		awaited:  make(chan Action, inFlight),
		toClient: make(chan message, inFlight),
		requests: &wobble{proxy: p, number: number, direction: 0},
		replies:  &wobble{proxy: p, number: number, direction: 1},
		dead:     make(chan struct{}),
	}
}

// run serves the connection until both directions have ended. When the client closes its side, the
// proxy delivers the remaining requests and closes its side to the server. The server then closes
// its side too, which ends the replies.
func (c *conn) run() {
	var all sync.WaitGroup
	all.Go(c.readRequests)
	all.Go(c.writeRequests)
	all.Go(c.readReplies)
	all.Go(c.writeReplies)
	all.Wait()
	c.kill()
}

// kill ends the connection in both directions at once.
func (c *conn) kill() {
	c.killOnce.Do(func() {
		close(c.dead)
		reset(c.client)
		c.server.Close()
	})
}

// reset closes a connection so that its peer gets an error instead of an end of file.
func reset(tcp *net.TCPConn) {
	tcp.SetLinger(0)
	tcp.Close()
}

func (c *conn) readRequests() {
	defer close(c.toServer)
	in := c.proxy.wire(c.client)
	for {
		words, raw, err := in.request()
		if err != nil {
			return
		}
		r := Request{Conn: c.number, Words: words}
		action := c.proxy.decide(r)
		switch {
		case subscribes(r.Command()):
			c.subscribed.Store(true)
		case len(words) > 0: // an empty command has no reply
			put(c, c.awaited, action)
		}
		put(c, c.toServer, message{raw: raw, due: c.requests.arrival(action.RequestDelay), hold: action.Hold})
		if action.Strand {
			reset(c.client)
		}
	}
}

func (c *conn) writeRequests() {
	defer c.server.CloseWrite()
	for {
		m, ok := take(c, c.toServer)
		if !ok || !c.arrive(m) {
			return
		}
		if c.lost.Load() {
			continue
		}
		if err := c.requests.write(c.server, m.raw, c.dead); err != nil {
			return
		}
	}
}

func (c *conn) readReplies() {
	defer close(c.toClient)
	in := c.proxy.wire(c.server)
	for {
		r, err := in.reply()
		if err != nil {
			return
		}
		var action Action
		switch {
		case !c.isMessage(r):
			select {
			case action = <-c.awaited:
			default: // a reply that no request asked for
			}
		case c.proxy.silent.Load() && strings.HasSuffix(r.word, "message"):
			continue
		}
		if action.Answered != nil {
			action.Answered()
		}
		put(c, c.toClient, message{raw: r.raw, due: c.replies.arrival(action.ReplyDelay), fate: action.Reply})
	}
}

// writeReplies ends when the server has closed its side, and then closes the client's connection.
// It continues if the client has gone away, so that the client's requests still reach the server.
func (c *conn) writeReplies() {
	defer c.kill()
	mute := false
	for {
		m, ok := take(c, c.toClient)
		if !ok || !c.arrive(m) {
			return
		}
		switch {
		case m.fate == BlackHole:
			c.lost.Store(true)
		case c.lost.Load():
		case m.fate == Swallow:
			mute = true
		case m.fate == Reset:
			reset(c.client)
		case m.fate == Close:
			c.client.Close()
		case !mute:
			c.replies.write(c.client, m.raw, c.dead)
		}
	}
}

// arrive waits until the message is to arrive. It returns false if the connection is killed first.
func (c *conn) arrive(m message) bool {
	if wait := time.Until(m.due); wait > 0 {
		due := make(chan struct{})
		timer := time.AfterFunc(wait, func() { close(due) })
		defer timer.Stop()
		if !c.await(due) {
			return false
		}
	}
	if m.hold != nil && !c.await(m.hold) {
		return false
	}
	return c.await(c.proxy.open())
}

// await waits for event. It returns false if the connection is killed first.
func (c *conn) await(event <-chan struct{}) bool {
	select {
	case <-event:
		return true
	case <-c.dead:
		return false
	}
}

// isMessage reports whether a value is a message of a subscription and not a reply: a push of
// RESP3, or an array that looks like a message on a connection that has subscribed.
func (c *conn) isMessage(r reply) bool {
	return r.kind == '>' || r.kind == '*' && c.subscribed.Load() &&
		(strings.HasSuffix(r.word, "message") || subscribes(strings.ToUpper(r.word)))
}

// subscribes reports whether a command changes subscriptions. The server answers such a command
// with a message for each channel, and not with a reply.
func subscribes(command string) bool {
	switch command {
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE":
		return true
	}
	return false
}
