package goredislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// A processor is a client, or one connection of a client.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// A sender sends requests over a processor.
type sender struct {
	on     processor
	failed func() // unless nil, called when no reply arrived, or the node has lost the slot
}

// A request is a command that go-redis sends once. By default go-redis repeats a command without a
// reply, after a pause that uses up the caller's time, and does not report it: the reply to the
// repeat would pass for the first one.
type request struct {
	*redis.Cmd
	words
}

// NoRetry implements redis.Cmder.
func (*request) NoRetry() bool { return true }

// Args implements redis.Cmder.
func (r *request) Args() []any { return r.read(r.Cmd.Args()) }

// An intsRequest is a request whose reply is a list of integers.
type intsRequest struct {
	*redis.IntSliceCmd
	words
}

// NoRetry implements redis.Cmder.
func (*intsRequest) NoRetry() bool { return true }

// Args implements redis.Cmder.
func (r *intsRequest) Args() []any { return r.read(r.IntSliceCmd.Args()) }

// An outgoing is a request or an intsRequest.
type outgoing interface {
	redis.Cmder
	unread() bool
}

// words records whether the arguments of a command were read, as its sender does. A cluster client
// reads them earlier, and hooks may.
type words struct{ seen atomic.Bool }

func (w *words) read(all []any) []any {
	w.seen.Store(true)
	return all
}

func (w *words) unread() bool { return !w.seen.Load() }

// EvalSHA implements rediscore.Sender.
func (s sender) EvalSHA(ctx context.Context, sha string, keys, args []string) (any, error) {
	r := &request{Cmd: redis.NewCmd(ctx, evalSHA(sha, keys, args)...)}
	return s.reply(ctx, r, 3, keys)
}

// EvalInts implements rediscore.Conn.
func (s sender) EvalInts(ctx context.Context, sha string, keys, args []string, to []int64) ([]int64, error) {
	r := &intsRequest{IntSliceCmd: redis.NewIntSliceCmd(ctx, evalSHA(sha, keys, args)...)}
	if err := s.send(ctx, r, 3, keys); err != nil {
		return to, clientError(err)
	}
	return append(to, r.Val()...), nil
}

// Do implements rediscore.Sender.
func (s sender) Do(ctx context.Context, c rediscore.Command) (any, error) {
	return s.reply(ctx, &request{Cmd: redis.NewCmd(ctx, join(c.Words, c.Keys, c.Args)...)}, len(c.Words), c.Keys)
}

// evalSHA returns the arguments of EVALSHA.
func evalSHA(sha string, keys, args []string) []any {
	return join([]string{"EVALSHA", sha, strconv.Itoa(len(keys))}, keys, args)
}

// join concatenates the parts of a command.
func join(words, keys, args []string) []any {
	all := make([]any, 0, len(words)+len(keys)+len(args))
	for _, part := range [...][]string{words, keys, args} {
		for _, word := range part {
			all = append(all, word)
		}
	}
	return all
}

// reply sends a request and returns the server's reply.
func (s sender) reply(ctx context.Context, r *request, at int, keys []string) (any, error) {
	return result(r, s.send(ctx, r, at, keys))
}

// result returns the server's reply to r, or the error converted by clientError.
func result(r *request, err error) (any, error) {
	if isNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, clientError(err)
	}
	return decode(r.Val()), nil
}

// EvalEach implements rediscore.Pipeliner.
func (c *conn) EvalEach(ctx context.Context, calls []rediscore.Call) []rediscore.Reply {
	pipe := c.single.Pipeline()
	all := make([]*request, len(calls))
	for i, call := range calls {
		all[i] = &request{Cmd: redis.NewCmd(ctx, evalSHA(call.SHA, call.Keys, call.Args)...)}
		_ = pipe.Process(ctx, all[i])
	}
	patient, done := patience(ctx)
	defer done()
	_, _ = pipe.Exec(patient) // each request has its own error
	replies := make([]rediscore.Reply, len(calls))
	for i, r := range all {
		replies[i].Value, replies[i].Err = result(r, c.outcome(patient, r, r.Err()))
	}
	return replies
}

// send sends r, whose keys begin at argument at, and returns the client's error.
func (s sender) send(ctx context.Context, r outgoing, at int, keys []string) error {
	if len(keys) > 0 {
		r.SetFirstKeyPos(int8(at))
	}
	r.SetStepCount(1) // otherwise go-redis sends COMMAND to a cluster
	patient, done := patience(ctx)
	defer done()
	return s.outcome(patient, r, s.on.Process(patient, r))
}

// outcome returns the client's error of r, which was sent with a context from patience.
func (s sender) outcome(patient context.Context, r outgoing, err error) error {
	if errors.Is(err, context.Canceled) && context.Cause(patient) == errNoConnection {
		err = errNoConnection
		if r.unread() { // otherwise a hook may have returned early after r was sent
			err = fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
		}
	}
	if _, moved := redis.IsMovedError(err); s.failed != nil && (moved || isSilence(err)) {
		s.failed()
	}
	return err
}

// decode converts a reply of go-redis into one that rediscore.Conn describes.
func decode(reply any) any {
	switch reply := reply.(type) {
	case []any:
		for i := range reply {
			reply[i] = decode(reply[i])
		}
	case map[any]any:
		texts := make(map[string]any, len(reply))
		for k, v := range reply {
			if text, ok := k.(string); ok {
				texts[text] = decode(v)
			}
		}
		return texts
	}
	return reply
}

// errNoConnection ends the wait for a connection.
var errNoConnection = errors.New("no connection of the client's pool became free, or could be made, in half of the request's time: raise PoolSize, or give the locks a client of their own")

// patience returns a context for a request. It is cancelled after half of ctx's time. go-redis
// checks for a cancelled context only while it has no connection. So a request that waits for the
// pool fails early enough for a retry, and requests in flight continue.
func patience(ctx context.Context) (context.Context, context.CancelFunc) {
	end, limited := ctx.Deadline()
	if !limited {
		return ctx, func() {}
	}
	patient, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(time.Until(end)/2, func() { cancel(errNoConnection) })
	return patient, func() {
		timer.Stop()
		cancel(nil)
	}
}
