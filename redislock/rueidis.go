package redislock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// A conn is a rueidis client as a rediscore.Conn.
type conn struct {
	sender
	client   rueidis.Client
	detector *detector // made the client's connections; nil if the client belongs to the caller
	lanes    []*lane   // in the order in which they are tried
}

func newConn(client rueidis.Client, detector *detector) *conn {
	return &conn{sender{client}, client, detector, nil}
}

// callers returns the caller's client as a Conn, or nil for nil.
func callers(client rueidis.Client) rediscore.Conn {
	if client == nil {
		return nil
	}
	return newConn(client, nil)
}

// Dedicate implements rediscore.Conn. rueidis waits without a limit for its pool.
func (c *conn) Dedicate(ctx context.Context) (rediscore.Session, error) {
	taken := make(chan *session)
	go func() { // ends when the pool has a connection
		on, giveBack := c.client.Dedicate()
		select {
		case taken <- &session{sender{on}, on, giveBack}:
		case <-ctx.Done():
			giveBack()
		}
	}()
	select {
	case s := <-taken:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *conn) Nodes() map[string]rediscore.Conn {
	nodes := map[string]rediscore.Conn{}
	for addr, node := range c.client.Nodes() {
		nodes[addr] = newConn(node, nil)
	}
	return nodes
}

// EvalEach implements rediscore.Pipeliner.
func (c *conn) EvalEach(ctx context.Context, calls []rediscore.Call) []rediscore.Reply {
	send := func() []rueidis.RedisResult {
		all := make([]rueidis.Completed, len(calls))
		for i, call := range calls {
			all[i] = request{sha: call.SHA, Command: rediscore.Command{Keys: call.Keys, Args: call.Args}}.build(c.client)
		}
		return c.client.DoMulti(ctx, all...)
	}
	results := send()
	if endedWithAnother(ctx, results[0].NonRedisError()) { // as in sender.send; if the first has this error, all have
		results = send()
	}
	replies := make([]rediscore.Reply, len(calls))
	for i, result := range results {
		replies[i].Value, replies[i].Err = decode(result)
	}
	return replies
}

// Begin implements rediscore.Direct.
func (c *conn) Begin(ctx context.Context) rediscore.Lane {
	for _, l := range c.lanes {
		reserved, inUse := l.begin(ctx)
		if reserved {
			return l
		}
		if !inUse {
			break // do not open a further lane before this one is used
		}
	}
	return nil
}

func (c *conn) Mode() rediscore.Mode {
	switch c.client.Mode() {
	case rueidis.ClientModeCluster:
		return rediscore.InCluster
	case rueidis.ClientModeSentinel:
		return rediscore.BySentinel
	}
	return rediscore.OneServer
}

func (c *conn) Close() {
	if c.detector != nil {
		c.detector.close()
		c.client.Close() // with its connections closed, the client sends no farewells
	}
}

// A sender sends requests over the shared connection or over a dedicated one.
type sender struct{ client rueidis.CoreClient }

func (s sender) EvalSHA(ctx context.Context, sha string, keys, args []string) (any, error) {
	return decode(s.send(ctx, request{sha: sha, Command: rediscore.Command{Keys: keys, Args: args}}))
}

func (s sender) EvalInts(ctx context.Context, sha string, keys, args []string, to []int64) ([]int64, error) {
	return appendInts(to, s.send(ctx, request{sha: sha, Command: rediscore.Command{Keys: keys, Args: args}}))
}

// appendInts appends a reply of integers.
func appendInts(to []int64, result rueidis.RedisResult) ([]int64, error) {
	items, err := result.ToArray()
	for i := range items {
		var n int64
		if n, err = items[i].ToInt64(); err != nil {
			break
		}
		to = append(to, n)
	}
	return to, clientError(err)
}

func (s sender) Do(ctx context.Context, c rediscore.Command) (any, error) {
	return decode(s.send(ctx, request{Command: c}))
}

// A request is a command or a script.
type request struct {
	sha string // "" for a command
	rediscore.Command
}

// build returns the request as a rueidis command, which copies the lists.
func (r request) build(client rueidis.CoreClient) rueidis.Completed {
	if r.sha == "" {
		return client.B().Arbitrary(r.Words...).Keys(r.Keys...).Args(r.Args...).Build()
	}
	return client.B().Evalsha().Sha1(r.sha).Numkeys(int64(len(r.Keys))).Key(r.Keys...).Arg(r.Args...).Build()
}

// send sends a request. It sends it again if nothing was sent because another call's deadline had
// passed. It builds the request for each attempt, because rueidis reuses it.
func (s sender) send(ctx context.Context, r request) rueidis.RedisResult {
	result := s.client.Do(ctx, r.build(s.client))
	if endedWithAnother(ctx, result.NonRedisError()) {
		result = s.client.Do(ctx, r.build(s.client))
	}
	return result
}

// endedWithAnother reports whether err is the end of a context that is not ctx. If a caller waits
// for a connection that another call is making, rueidis gives it the error of that call, even if
// that call's deadline had passed. Nothing was sent then. A request that was sent ends with its own
// context or in another way, such as with a dialError.
func endedWithAnother(ctx context.Context, err error) bool {
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return false
	}
	var dial *dialError
	end, limited := ctx.Deadline() // it may have passed just now
	return !errors.As(err, &dial) && (!limited || time.Now().Before(end))
}

// A session is a dedicated rueidis connection as a rediscore.Session.
type session struct {
	sender
	on       rueidis.DedicatedClient
	giveBack func()
}

func (s *session) Subscribe(ctx context.Context, onMessage func(channel, message string), channels ...string) (<-chan error, error) {
	broken := s.on.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) { onMessage(m.Channel, m.Message) },
	})
	return broken, clientError(s.on.Do(ctx, s.on.B().Subscribe().Channel(channels...).Build()).Error())
}

func (s *session) Track(ctx context.Context, changed func(keys []string)) (<-chan error, error) {
	broken := s.on.SetOnInvalidations(func(messages []rueidis.RedisMessage) {
		if messages == nil {
			changed(nil)
			return
		}
		keys := make([]string, 0, len(messages))
		for _, m := range messages {
			if key, err := m.ToString(); err == nil {
				keys = append(keys, key)
			}
		}
		changed(keys)
	})
	return broken, clientError(s.on.Do(ctx, s.on.B().ClientTracking().On().Build()).Error())
}

func (s *session) Wait(ctx context.Context, enough int, limit time.Duration) (int, error) {
	n, err := s.on.Do(ctx, s.on.B().Wait().Numreplicas(int64(enough)).Timeout(limit.Milliseconds()).Build()).AsInt64()
	return int(n), clientError(err)
}

func (s *session) GiveBack() { s.giveBack() }
func (s *session) Close()    { s.on.Close() }

// decode returns the server's reply, or its error converted by clientError.
func decode(r rueidis.RedisResult) (any, error) {
	message, err := r.ToMessage()
	if err != nil {
		if rueidis.IsRedisNil(err) {
			return nil, nil
		}
		return nil, clientError(err)
	}
	reply, err := message.ToAny()
	return reply, clientError(err)
}

// A dialError is a failure to connect: nothing was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// clientError converts an error of the client into one that rediscore.Conn describes.
func clientError(err error) error {
	if err == nil {
		return nil
	}
	if redisErr, ok := rueidis.IsRedisErr(err); ok {
		return rediscore.ReplyError(redisErr.Error())
	}
	if errors.Is(err, rueidis.ErrNoSlot) { // the client found no node to send the request to
		return fmt.Errorf("%w: the cluster does not serve this name for now: try again later", driver.ErrUnavailable)
	}
	var dial *dialError
	var op *net.OpError
	if errors.As(err, &op) && op.Net == "unix" && errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: cannot connect: %w", driver.ErrPermission, err)
	}
	if errors.As(err, &dial) || errors.As(err, &op) && op.Op == "dial" {
		return fmt.Errorf("%w: cannot connect: %w", driver.ErrUnavailable, err)
	}
	return fmt.Errorf("no answer from the server: %w", err)
}
