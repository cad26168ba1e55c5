package faultproxy

import (
	"slices"
	"strings"
	"time"
)

// A Request is one command that a client sent.
type Request struct {
	Conn  int      // the number of the client connection, from 1
	Words []string // the command and its arguments, e.g. EVALSHA, sha, 1, key, …
}

// Command returns the first word in upper case.
func (r Request) Command() string {
	if len(r.Words) == 0 {
		return ""
	}
	return strings.ToUpper(r.Words[0])
}

// Has reports whether word is an argument of the request.
func (r Request) Has(word string) bool {
	return len(r.Words) > 0 && slices.Contains(r.Words[1:], word)
}

// An Action is what happens to one request and to its reply. The zero
// Action passes both on at once.
//
// A connection is a stream: an Action that delays or holds a request or a reply also delays
// all later ones on the same connection.
type Action struct {
	// RequestDelay is the time that the request needs to reach the server.
	RequestDelay time.Duration

	// Hold, if not nil, keeps the request on the wire until the channel is
	// closed. The request reaches the server even if the client has closed
	// its connection by then.
	Hold <-chan struct{}

	// Strand resets the client's connection at once, while the request is under way. The
	// client stops waiting for the reply. Its next requests use another connection, and
	// overtake this one if Hold or RequestDelay keeps it.
	Strand bool

	// ReplyDelay is the time that the reply needs to reach the client.
	ReplyDelay time.Duration

	// Reply is whether the reply arrives at all.
	Reply Fate

	// Answered, if not nil, is called when the server has replied to the request, before the
	// proxy does anything with the reply. The replies of the connection wait while it runs.
	Answered func()
}

// A Fate is what happens to a reply. In every case the server has carried the
// request out.
type Fate int

const (
	// Deliver passes the reply on.
	Deliver Fate = iota
	// Swallow loses the reply and all later ones on this connection. The connection stays
	// open, and requests still reach the server.
	Swallow
	// Reset resets the client's connection instead of delivering the reply.
	Reset
	// Close closes the client's connection in order instead of delivering the reply.
	Close
	// BlackHole loses the reply and all later bytes on this connection in both directions, as
	// Proxy.BlackHoleConns does. Later requests never reach the server.
	BlackHole
)

// Delay returns the Action of a slow network.
func Delay(request, reply time.Duration) Action {
	return Action{RequestDelay: request, ReplyDelay: reply}
}

// Zombie returns the Action of a request that arrives after its client has given up: the client's
// connection is reset at once, and the request reaches the server when release is closed.
func Zombie(release <-chan struct{}) Action {
	return Action{Hold: release, Strand: true}
}
