package rediscore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// A Store is the part of an Engine that the packages under it share: a connection, and the keys of
// one prefix. Its methods are for those packages.
type Store struct {
	conn    Conn
	cluster bool
	keys    keys.Space
	inbox   *inbox
	workers *workers
	nodes   *nodes // nil unless in a Redis Cluster
	listen  func() // inbox.listen, as a value that is allocated once

	direct Direct       // nil if conn is not a Direct
	asking atomic.Int32 // requests in progress about one name

	// life ends with Close. It is a field because it is not a caller's context: it bounds the
	// engine's own work.
	life context.Context
}

// Conn returns the connection.
func (s *Store) Conn() Conn { return s.conn }

// Keys returns the names of the keys.
func (s *Store) Keys() keys.Space { return s.keys }

// Enter returns an error if no request about name may be sent.
func (s *Store) Enter(ctx context.Context, name string) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.life.Err() != nil:
		return driver.ErrClosed
	}
	return s.keys.Check(name)
}

// Slot returns the slot of a name in a Redis Cluster, otherwise 0. One script cannot serve names
// with different slots.
func (s *Store) Slot(name string) uint32 {
	if !s.cluster {
		return 0
	}
	return uint32(keys.Slot(s.keys.Lock(name)))
}

// Route returns a number for the node that serves a name in a Redis Cluster, the slot while that
// node is unknown, otherwise 0. One write cannot serve names with different routes.
func (s *Store) Route(name string) uint32 {
	s.nodes.want()
	return s.nodes.known().route(s.Slot(name))
}

// EvalAbout runs a script about one name, and about one lease ID if the script has keys of it.
func (s *Store) EvalAbout(ctx context.Context, script *lua.Script, name string, id lockinfo.LeaseID, args ...string) (any, error) {
	if err := s.Enter(ctx, name); err != nil {
		return nil, err
	}
	return s.Eval(ctx, script, s.keys.Of(script.Keys, name, id), args)
}

// Granted counts leases that were granted, and Ended counts one that was released. While there are
// leases, the store listens for breaks.
func (s *Store) Granted(n int) { s.inbox.losses.Granted(n, s.listen) }
func (s *Store) Ended()        { s.inbox.losses.Ended() }

// Eval runs a script about one name and returns its reply.
func (s *Store) Eval(ctx context.Context, script *lua.Script, keys, args []string) (any, error) {
	s.asking.Add(1)
	defer s.asking.Add(-1)
	reply, done, err := s.evalDirect(ctx, script, keys, args)
	if !done {
		return s.evalShared(ctx, script, keys, args)
	}
	r := s.repeat(ctx, script, Call{Keys: keys, Args: args}, Reply{reply, err})
	return r.Value, r.Err
}

// evalShared runs a script on the shared connection. INVARIANT I9: renewals use only that. If all
// connections fall silent at once, a renewal that tried a lane first would spend the time to detect
// it twice, and the lease might expire meanwhile.
func (s *Store) evalShared(ctx context.Context, script *lua.Script, keys, args []string) (any, error) {
	reply, err := s.ask(ctx, func() (any, error) { return eval(ctx, s.conn, script, keys, args) })
	r := s.repeat(ctx, script, Call{Keys: keys, Args: args}, Reply{reply, err})
	return r.Value, r.Err
}

// repeat makes a call again if its connection was given up and a repeat of the script has the same
// reply as the first call.
func (s *Store) repeat(ctx context.Context, script *lua.Script, c Call, first Reply) Reply {
	if errors.Is(first.Err, ErrGivenUp) && script.Repeats && ctx.Err() == nil {
		again, failed := s.ask(ctx, func() (any, error) { return eval(ctx, s.conn, script, c.Keys, c.Args) })
		if failed == nil {
			return Reply{Value: again} // otherwise the outcome of the first call stays unknown
		}
	}
	return first
}

// evalDirect makes the call on the caller's goroutine. It reports false if the call still has to be
// made.
func (s *Store) evalDirect(ctx context.Context, script *lua.Script, keys, args []string) (reply any, done bool, err error) {
	lane := s.lane(ctx)
	if lane == nil {
		return nil, false, nil
	}
	_, sha := script.Source()
	reply, sent, err := lane.DirectSHA(ctx, sha, keys, args)
	done, err = s.madeDirect(ctx, sent, err)
	return reply, done, err
}

// lane reserves a lane for a call if few requests are in progress, and returns nil otherwise: many
// requests are faster if they share calls.
func (s *Store) lane(ctx context.Context) Lane {
	if s.direct == nil || s.asking.Load() > MostDirect {
		return nil
	}
	return s.direct.Begin(ctx)
}

// madeDirect reports whether a call on a lane was made, and returns its error. If ctx or the
// engine has ended, that is the error.
func (s *Store) madeDirect(ctx context.Context, sent bool, err error) (bool, error) {
	switch {
	case !sent || isUnknown(err):
		return false, nil
	case err == nil || ServerSays(err) != "":
		return true, err
	case s.life.Err() != nil:
		return true, errClosing
	case ctx.Err() != nil:
		return true, noAnswer(ctx)
	}
	return true, err
}

// Do sends a command over on. If on is nil, the command may go to any server that serves its keys.
func (s *Store) Do(ctx context.Context, on Sender, c Command) (any, error) {
	if on == nil {
		on = s.conn
	}
	return s.ask(ctx, func() (any, error) { return on.Do(ctx, c) })
}

// eval sends a script by its hash. If the server does not know the script, it has run nothing, and
// eval sends the text.
func eval(ctx context.Context, on Sender, script *lua.Script, keys, args []string) (any, error) {
	text, sha := script.Source()
	reply, err := on.EvalSHA(ctx, sha, keys, args)
	if isUnknown(err) {
		return evalText(ctx, on, text, keys, args)
	}
	return reply, err
}

// evalInts is eval for a script whose reply is a list of integers. It appends them to a list.
func evalInts(ctx context.Context, on Conn, script *lua.Script, keys, args []string, to []int64) ([]int64, error) {
	text, sha := script.Source()
	all, err := on.EvalInts(ctx, sha, keys, args, to)
	if !isUnknown(err) {
		return all, err
	}
	reply, err := evalText(ctx, on, text, keys, args)
	if err != nil {
		return to, err
	}
	return appendInts(to, reply)
}

// appendInts appends a reply of integers.
func appendInts(to []int64, reply any) ([]int64, error) {
	items, _ := reply.([]any)
	for _, item := range items {
		n, ok := item.(int64)
		if !ok {
			return to, form.Malformed("a script", reply)
		}
		to = append(to, n)
	}
	return to, nil
}

// isUnknown reports whether the server does not know a script.
func isUnknown(err error) bool {
	return err != nil && strings.HasPrefix(ServerSays(err), "NOSCRIPT")
}

// isElsewhere reports whether a node has redirected a call to another node.
func isElsewhere(err error) bool {
	code, _, _ := strings.Cut(ServerSays(err), " ")
	return code == "MOVED" || code == "ASK"
}

func evalText(ctx context.Context, on Sender, text string, keys, args []string) (any, error) {
	words := []string{"EVAL", text, strconv.Itoa(len(keys))}
	return on.Do(ctx, Command{Words: words, Keys: keys, Args: args})
}

// errClosing means that the engine was closed before the server replied.
var errClosing = errors.New("the engine was closed before the server answered")

// A question is a request whose caller may leave before the reply.
type question struct {
	request func() (any, error)
	answers chan answer // has room for the one answer
}

// An answer is the outcome of a request.
type answer struct {
	reply any
	err   error
}

func (q *question) do() {
	reply, err := q.request()
	q.answers <- answer{reply, err}
}

// ask returns what request does, or an error as soon as ctx or the engine ends;
// the outcome is then unknown.
//
// The request runs on another goroutine. A client may ignore ctx while it waits for a connection
// that another call opens, or while its queue to a silent server is full.
func (s *Store) ask(ctx context.Context, request func() (any, error)) (any, error) {
	q := &question{request, make(chan answer, 1)}
	s.workers.run(q)
	var cause error
	select {
	case a := <-q.answers:
		return a.reply, a.err
	case <-ctx.Done():
		cause = noAnswer(ctx)
	case <-s.life.Done():
		cause = errClosing
	}
	select {
	case a := <-q.answers: // if both are ready, prefer the reply
		return a.reply, a.err
	default:
		return nil, cause
	}
}

// noAnswer returns the error of a request whose ctx ended before the reply.
func noAnswer(ctx context.Context) error {
	return fmt.Errorf("no answer from the server: %w", ctx.Err())
}
