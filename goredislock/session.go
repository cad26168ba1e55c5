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

// A session is a dedicated connection. With its first request it takes one from the client's pool,
// and with Subscribe it opens one outside the pool.
type session struct {
	store *conn

	mu     sync.Mutex // guards the rest: Close may come at any time
	sticky *redis.Conn
	tells  *subscription // reports changes of keys; nil unless tracked
	ends   []func()      // called by Close
	users  int           // requests in progress on sticky
	closed bool
}

// errEnded means that the session is closed and nothing was sent.
var errEnded = fmt.Errorf("%w: the session is", driver.ErrClosed)

// sender returns a sender on the session's connection; in a cluster, it connects to the node of the
// first key. The caller must call left after the request.
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
	s.users++
	return sender{s.sticky, s.store.failed}, nil
}

// left notes the end of a request.
func (s *session) left() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.giveUpLocked()
}

// giveUpLocked returns the connection to the pool once no request uses it: go-redis does not expect
// a connection to be closed during a request.
func (s *session) giveUpLocked() {
	if s.closed && s.users == 0 && s.sticky != nil {
		_ = s.sticky.Close()
		s.sticky = nil
	}
}

// EvalSHA implements rediscore.Sender.
func (s *session) EvalSHA(ctx context.Context, sha string, keys, args []string) (any, error) {
	on, err := s.sender(ctx, keys)
	if err != nil {
		return nil, err
	}
	defer s.left()
	return on.EvalSHA(ctx, sha, keys, args)
}

// Do implements rediscore.Sender.
func (s *session) Do(ctx context.Context, c rediscore.Command) (any, error) {
	on, err := s.sender(ctx, c.Keys)
	if err != nil {
		return nil, err
	}
	defer s.left()
	reply, err := on.Do(ctx, c)
	if s.tells != nil && err == nil {
		err = s.tells.passed(ctx) // messages about changes before this read are outdated
	}
	return reply, err
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

// endsWith has Close call end. It returns an error if the session is closed.
func (s *session) endsWith(end func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errEnded
	}
	s.ends = append(s.ends, end)
	return nil
}

// Subscribe implements rediscore.Session.
func (s *session) Subscribe(ctx context.Context, onMessage func(channel, message string), channels ...string) (<-chan error, error) {
	heard := newSubscription(s.store.subscriber(), onMessage)
	if err := s.endsWith(heard.close); err != nil {
		heard.close()
		return nil, err
	}
	return heard.broken, heard.begin(ctx, channels)
}

// errOfManyNodes means that the store is a cluster, in which each node reports its own keys.
var errOfManyNodes = fmt.Errorf("%w: keys of a cluster cannot be tracked", driver.ErrUnsupported)

// Track implements rediscore.Session. Later requests of the session use the tracked connection.
func (s *session) Track(ctx context.Context, changed func(keys []string)) (<-chan error, error) {
	if s.store.single == nil {
		return nil, errOfManyNodes
	}
	t, err := newTracking(s.store.single.Options(), changed)
	if err == nil {
		err = s.endsWith(t.close)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	read, err := t.begin(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sticky, s.tells = read, t.heard
	return t.heard.broken, nil
}

// GiveBack implements rediscore.Session.
func (s *session) GiveBack() { s.Close() }

// Close implements rediscore.Session. It returns the connection to the pool when the requests on it
// have ended.
func (s *session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.giveUpLocked()
	for _, end := range s.ends {
		end()
	}
}
