package rediscore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Conn is a client of a store, as an engine wants it. Its methods must be
// safe for concurrent use.
//
// # Requests
//
// A request must be sent once: it may be sent again only to another node that
// the server names, or if the server has certainly not seen it. The time that a
// holder may trust its lease counts from before the first sending. What
// concurrent callers send should share a connection, so that a cancel seldom
// overtakes its acquire. A caller whose context ends must not cost the others
// the connection.
//
// # Replies
//
// A reply is an int64, a string, nil, a []any of such, or a map[string]any of
// such where the server sends a map.
//
// # Errors
//
// The error of a server is what ReplyError returns. One that wraps
// driver.ErrUnavailable, driver.ErrInvalid or driver.ErrClosed means that
// nothing was sent, and one that wraps ErrGivenUp that the connection
// was given up for a new one, on which the request may be repeated. After every
// other error the outcome is unknown.
type Conn interface {
	Sender

	// EvalInts is EvalSHA for a script whose reply is a list of integers,
	// and appends them to a list of the caller's. A reply of another form is an
	// error. The lists are the caller's again when it returns.
	EvalInts(ctx context.Context, sha string, keys, args []string, to []int64) ([]int64, error)

	// Dedicate returns a connection that no other caller uses meanwhile.
	Dedicate() Session

	// Nodes returns the servers to which there are connections, by their
	// addresses: of a Redis Cluster all nodes, else one.
	Nodes() map[string]Conn

	// Mode tells how the servers belong together. It does not change.
	Mode() Mode

	// Close ends all connections that the Conn has made, those that are
	// dedicated too; not the connections of a client that is the caller's. It must not
	// wait for an answer of a server.
	Close()
}

// A Sender sends requests.
type Sender interface {
	// EvalSHA runs a script that the server knows by this hash.
	EvalSHA(ctx context.Context, sha string, keys, args []string) (any, error)

	// Do sends any other command, except those that have a method in Session.
	Do(ctx context.Context, c Command) (any, error)
}

// A Direct is a Conn with up to MostDirect further connections, its lanes, each for one call
// at a time: the goroutine of the caller writes the request and reads the reply.
type Direct interface {
	// Begin reserves a lane, and returns nil if none is free and open. It does not block. One
	// call must follow, with the same context.
	Begin(ctx context.Context) Lane
}

// MostDirect is how many requests may be in progress at once, of which each is made by its
// own caller. If there are more, they share calls.
const MostDirect = 4

// A Lane makes the one call for which it is reserved. The call returns within some
// milliseconds after ctx or the Conn has ended; then the outcome is unknown. It reports false
// if nothing was sent.
type Lane interface {
	// DirectSHA is EvalSHA on the lane.
	DirectSHA(ctx context.Context, sha string, keys, args []string) (reply any, sent bool, err error)

	// DirectInts is EvalInts on the lane.
	DirectInts(ctx context.Context, sha string, keys, args []string, to []int64) (all []int64, sent bool, err error)
}

// A Pipeliner is a node of a Redis Cluster, as Conn.Nodes returns it, that takes several
// scripts in one write.
type Pipeliner interface {
	// EvalEach is EvalSHA for each of the calls, which need not be of one slot. Each has its
	// own reply. The lists are the caller's again when it returns.
	EvalEach(ctx context.Context, calls []Call) []Reply
}

// A Call is a script by its hash, with its keys, which are of one slot, and arguments.
type Call struct {
	slot       uint32
	SHA        string
	Keys, Args []string
}

// A Reply is the reply to a call, or the error.
type Reply struct {
	Value any
	Err   error
}

// A Command is a request: the words in front of its keys, the keys, which are
// of one slot, and what follows them. One without keys may go to any server.
type Command struct{ Words, Keys, Args []string }

// A Session is a connection of its own. It is not safe for concurrent use, but
// for Close.
type Session interface {
	Sender

	// Subscribe listens on channels, and returns when the server has agreed.
	// told is called for one message after the other, and must not block.
	// broken receives, or is closed, when no more messages can come.
	Subscribe(ctx context.Context, told func(channel, message string), channels ...string) (broken <-chan error, err error)

	// Track has the server tell, once for each time that a key is read on the
	// session, that the key has changed. changed is called with such keys, or
	// with nil for all of them, and must not block.
	Track(ctx context.Context, changed func(keys []string)) (broken <-chan error, err error)

	// Wait returns how many replicas have the writes of the session,
	// when they are enough or the limit has passed.
	Wait(ctx context.Context, enough int, limit time.Duration) (int, error)

	// GiveBack lets others use the connection. Close ends it. One of the two
	// must be called.
	GiveBack()
	Close()
}

// A Mode is how the servers of a store belong together.
type Mode int

const (
	OneServer  Mode = iota
	BySentinel      // one server at a time, the master that sentinels name
	InCluster       // a Redis Cluster
)

// ErrGivenUp is wrapped by the error of a request whose connection was given up
// for a new one. The request may have been carried out.
var ErrGivenUp = errors.New("the connection was given up")

// A replyError is an error that a server has replied.
type replyError struct {
	text string // without the word ERR
	refusal
}

// ReplyError turns the text of a server's error into ours. One that is not
// known to mean that nothing was done leaves the outcome unknown.
func ReplyError(text string) error {
	// The word ERR carries nothing.
	text = strings.TrimPrefix(strings.TrimPrefix(text, "-"), "ERR ")
	return &replyError{text, meaning(text)}
}

func (e *replyError) Error() string {
	if e.sentinel == nil {
		return fmt.Sprintf("the server says %q", e.text)
	}
	return fmt.Sprintf("%v: %s (the server says %q)", e.sentinel, e.advice, e.text)
}

func (e *replyError) Unwrap() error { return e.sentinel }

// ServerSays returns the words of the server in an error; "" if it is not the
// server's.
func ServerSays(err error) string {
	if reply, ok := errors.AsType[*replyError](err); ok {
		return reply.text
	}
	return ""
}
