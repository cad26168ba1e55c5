package goredislock

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// A session is a connection of its own. It takes one of the client's pool with its
// first request, and one beside the pool with Subscribe.
type session struct {
	store *conn

	mu     sync.Mutex // guards the rest: Close may come at any time
	sticky *redis.Conn
	heard  *subscription
	closed bool
}

// errEnded: nothing is sent on a session that is closed.
var errEnded = fmt.Errorf("%w: the session is", driver.ErrClosed)

// sender returns what sends over the session's connection: in a cluster, one to
// the node that has the key.
func (s *session) sender(ctx context.Context, keys []string) (sender, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return sender{}, errEnded
	}
	if s.sticky == nil {
		node := s.store.single
		if node == nil {
			key := ""
			if len(keys) > 0 {
				key = keys[0]
			}
			var err error
			if node, err = s.store.cluster.MasterForKey(ctx, key); err != nil {
				return sender{}, clientError(err)
			}
		}
		s.sticky = node.Conn()
	}
	return sender{s.sticky, s.store.failed}, nil
}

// EvalSHA implements rediscore.Sender.
func (s *session) EvalSHA(ctx context.Context, sha string, keys, args []string) (any, error) {
	on, err := s.sender(ctx, keys)
	if err != nil {
		return nil, err
	}
	return on.EvalSHA(ctx, sha, keys, args)
}

// EvalInts implements rediscore.Sender.
func (s *session) EvalInts(ctx context.Context, sha string, keys, args []string, to []int64) ([]int64, error) {
	on, err := s.sender(ctx, keys)
	if err != nil {
		return to, err
	}
	return on.EvalInts(ctx, sha, keys, args, to)
}

// Do implements rediscore.Sender.
func (s *session) Do(ctx context.Context, c rediscore.Command) (any, error) {
	on, err := s.sender(ctx, c.Keys)
	if err != nil {
		return nil, err
	}
	return on.Do(ctx, c)
}

// Wait implements rediscore.Session.
func (s *session) Wait(ctx context.Context, enough int, limit time.Duration) (int, error) {
	reply, err := s.Do(ctx, rediscore.Command{Words: []string{"WAIT", strconv.Itoa(enough), strconv.FormatInt(limit.Milliseconds(), 10)}})
	if err != nil {
		return 0, err
	}
	n, ok := reply.(int64)
	if !ok {
		return 0, fmt.Errorf("WAIT: the server says %v", reply)
	}
	return int(n), nil
}

// Subscribe implements rediscore.Session.
func (s *session) Subscribe(ctx context.Context, told func(channel, message string), channels ...string) (<-chan error, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errEnded
	}
	s.heard = newSubscription(s.store, told)
	s.mu.Unlock()
	return s.heard.broken, s.heard.begin(ctx, channels)
}

// Track implements rediscore.Session: go-redis reads what a server tells by itself
// only while it waits for an answer, which would be too late.
func (s *session) Track(context.Context, func(keys []string)) (<-chan error, error) {
	return nil, rediscore.ReplyError("go-redis does not tell of keys that change")
}

// GiveBack implements rediscore.Session.
func (s *session) GiveBack() { s.Close() }

// Close implements rediscore.Session. A connection of the pool goes back to it,
// when what is under way on it is answered: go-redis gives none to others before.
func (s *session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	if s.sticky != nil {
		_ = s.sticky.Close()
	}
	if s.heard != nil {
		s.heard.close()
	}
}
