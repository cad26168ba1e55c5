package rediscore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Conn is a client of a store that an engine can use. Its methods must be safe for concurrent
// use.
//
// # Requests
//
// A request must be sent once. It may be sent again only to another node that the server names, or
// if the server has certainly not seen it. A holder counts the validity of its lease from before
// the first sending. Requests of concurrent callers should share a connection, so that a cancel
// seldom overtakes its acquire. If one caller's context ends, the other callers must not lose the
// connection.
//
// # Replies
//
// A reply is an int64, a string, nil, a []any of these, or a map[string]any of these if the server
// sends a map.
//
// # Errors
//
// An error reply of the server becomes the error that ReplyError returns. An error that wraps
// driver.ErrUnavailable, driver.ErrInvalid or driver.ErrClosed means that nothing was sent. An
// error that wraps ErrGivenUp means that the connection was given up for a new one, on which the
// request may be repeated. After any other error the outcome is unknown.
type Conn interface {
	Sender

	// EvalInts is EvalSHA for a script whose reply is a list of integers. It appends them to the
	// list to. A reply of another form is an error. The Conn must not use the lists after EvalInts
	// returns.
	EvalInts(ctx context.Context, sha string, keys, args []string, to []int64) ([]int64, error)

	// Dedicate returns a connection that no other caller uses until it is returned or closed. If
	// the client has none, it waits for one until ctx ends.
	Dedicate(ctx context.Context) (Session, error)

	// Nodes returns the connected servers by address: all nodes of a Redis Cluster, otherwise one
	// server.
	Nodes() map[string]Conn

	// Mode returns how the servers of the store are organized. It does not change.
	Mode() Mode

	// Close closes all connections that the Conn has made, including dedicated ones. It does not
	// close the connections of a client that the caller owns. It must not wait for a reply.
	Close()
}

// A Sender sends requests.
type Sender interface {
	// EvalSHA runs a script that the server knows by this hash.
	EvalSHA(ctx context.Context, sha string, keys, args []string) (any, error)

	// Do sends any other command, except those that have a method in Session.
	Do(ctx context.Context, c Command) (any, error)
}

// A Direct is a Conn with up to MostDirect further connections, its lanes. A lane makes one call at
// a time: the caller's goroutine writes the request and reads the reply.
type Direct interface {
	// Begin reserves a lane, or returns nil if no lane is free and open. It does not block. The
	// caller must then make one call with the same context.
	Begin(ctx context.Context) Lane
}

// MostDirect is how many callers at once may make their calls on lanes. If more requests are in
// progress, they share calls.
const MostDirect = 4

// A Lane makes the one call for which it is reserved. The call returns within a few milliseconds
// after ctx or the Conn ends; the outcome is then unknown. It reports false if nothing was sent.
type Lane interface {
	// DirectSHA is EvalSHA on the lane.
	DirectSHA(ctx context.Context, sha string, keys, args []string) (reply any, sent bool, err error)

	// DirectInts is EvalInts on the lane.
	DirectInts(ctx context.Context, sha string, keys, args []string, to []int64) (all []int64, sent bool, err error)
}

// A Pipeliner is a node of a Redis Cluster, as returned by Conn.Nodes, that accepts several scripts
// in one write.
type Pipeliner interface {
	// EvalEach is EvalSHA for each of the calls, which may be for different slots. Each call has
	// its own reply. The Pipeliner must not use the lists after EvalEach returns.
	EvalEach(ctx context.Context, calls []Call) []Reply
}

// A Call runs a script by its hash, with arguments and with keys of one slot.
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

// A Command is a request: the words before its keys, the keys, and the arguments after them. All
// keys are in one slot. A command without keys may go to any server.
type Command struct{ Words, Keys, Args []string }

// A Session is a dedicated connection. Only Close is safe for concurrent use.
type Session interface {
	Sender

	// Subscribe subscribes to channels, and returns when the server has confirmed. It calls onMessage
	// for one message at a time; onMessage must not block. broken receives an error, or is closed, when
	// the subscription has ended.
	Subscribe(ctx context.Context, onMessage func(channel, message string), channels ...string) (broken <-chan error, err error)

	// Track has the server report changes of the keys that are read on the session, once for each
	// read. It calls changed with the changed keys, or with nil for all keys; changed must not
	// block.
	Track(ctx context.Context, changed func(keys []string)) (broken <-chan error, err error)

	// Wait returns how many replicas have the session's writes, once there are enough of them or
	// the limit has passed.
	Wait(ctx context.Context, enough int, limit time.Duration) (int, error)

	// GiveBack returns the connection for others to use. Close closes it. The caller must call one
	// of the two.
	GiveBack()
	Close()
}

// A Mode is how the servers of a store are organized.
type Mode int

const (
	OneServer  Mode = iota
	BySentinel      // one server at a time, the master that sentinels name
	InCluster       // a Redis Cluster
)

// ErrGivenUp is wrapped by the error of a request whose connection was given up
// for a new one. The request may have been carried out.
var ErrGivenUp = errors.New("the connection was given up")

// A replyError is an error reply of a server.
type replyError struct {
	text string // without the word ERR
	refusal
}

// ReplyError converts the text of a server's error reply. Unless the text is known to mean that
// nothing was done, the outcome is unknown.
func ReplyError(text string) error {
	// The word ERR carries no information.
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

// ServerSays returns the text of the server's error reply, or "" if err is not one.
func ServerSays(err error) string {
	if reply, ok := errors.AsType[*replyError](err); ok {
		return reply.text
	}
	return ""
}
