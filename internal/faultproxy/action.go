package faultproxy

import (
	"slices"
	"strings"
	"time"
)

// A Request is one command that a client sent.
type Request struct {
	Conn  int      // which client connection, counted from 1
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
// A connection is a stream: whatever delays or holds one request or reply
// delays later requests on the same connection, and never lets them pass.
type Action struct {
	// RequestDelay is the time that the request needs to reach the server.
	RequestDelay time.Duration

	// Hold, if not nil, keeps the request on the wire until the channel is
	// closed. The request reaches the server even if the client has closed
	// its connection by then.
	Hold <-chan struct{}

	// Strand resets the client's connection at once, with the request already
	// under way: the client no longer waits for the reply, and its next
	// requests, on another connection, overtake it if Hold or RequestDelay
	// keeps it.
	Strand bool

	// ReplyDelay is the time that the reply needs to reach the client.
	ReplyDelay time.Duration

	// Reply is whether the reply arrives at all.
	Reply Fate

	// Answered, if not nil, is called when the server has carried the request
	// out, before anything is done with the reply. The replies of the
	// connection wait while it runs.
	Answered func()
}

// A Fate is what happens to a reply. In every case the server has carried the
// request out.
type Fate int

const (
	// Deliver passes the reply on.
	Deliver Fate = iota
	// Swallow loses the reply and all later ones on this connection,
	// which stays open and goes on taking requests to the server: a client
	// sees a stream that has stopped.
	Swallow
	// Reset resets the client's connection instead of delivering the reply.
	Reset
	// Close closes the client's connection in order instead of delivering the reply.
	Close
	// BlackHole loses the reply and all later bytes on this connection in
	// both directions, as Proxy.BlackHoleConn does: what the client sends from
	// then on never reaches the server.
	BlackHole
)

// Delay returns the Action of a slow network.
func Delay(request, reply time.Duration) Action {
	return Action{RequestDelay: request, ReplyDelay: reply}
}

// Zombie returns the Action of a request that outlives its client's interest:
// the client's connection is reset, and the request reaches the server once
// release is closed.
func Zombie(release <-chan struct{}) Action {
	return Action{Hold: release, Strand: true}
}
