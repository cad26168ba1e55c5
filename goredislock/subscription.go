package goredislock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// pingEvery is how often a subscription pings the server. If the server sends nothing between two
// pings, the connection is given up.
const pingEvery = 3 * time.Second

// A subscription is a connection outside the pool on which the server sends messages. It ends with
// the first error: go-redis would reconnect by itself, and not report that messages were missed.
type subscription struct {
	on        *redis.PubSub
	onMessage func(channel, message string)
	agreed    chan struct{} // one value for each subscribed channel
	broken    chan error    // receives the error that ended the subscription
	pongs     chan string   // holds the latest reply to passed
	spoke     atomic.Bool   // the server has sent something since the last ping
	end       context.CancelFunc
	life      context.Context // of its goroutines
	passes    int             // number of calls of passed
}

func newSubscription(on *redis.PubSub, onMessage func(channel, message string)) *subscription {
	life, end := context.WithCancel(context.Background())
	return &subscription{on: on, onMessage: onMessage, broken: make(chan error, 1), pongs: make(chan string, 1), life: life, end: end}
}

// begin connects and subscribes, and returns when the server has confirmed. Without channels it
// only connects. After an error the caller must close the subscription.
func (s *subscription) begin(ctx context.Context, channels []string) error {
	s.agreed = make(chan struct{}, len(channels))
	defer context.AfterFunc(ctx, s.end)() // so that an attempt to connect returns
	begin := func() error { return s.on.Subscribe(s.life, channels...) }
	if len(channels) == 0 {
		begin = func() error { return s.on.Ping(s.life) }
	}
	if err := begin(); err != nil {
		return clientError(err)
	}
	go s.listen()
	go s.watch(pingEvery)
	for range channels {
		select {
		case <-s.agreed:
		case err := <-s.broken:
			return clientError(err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// listen receives messages until the connection ends.
func (s *subscription) listen() {
	for {
		message, err := s.on.ReceiveTimeout(s.life, 0)
		if err != nil {
			s.end() // before go-redis makes another connection, or just after
			s.broken <- err
			return
		}
		s.spoke.Store(true)
		switch m := message.(type) {
		case *redis.Subscription:
			s.agreed <- struct{}{}
		case *redis.Message:
			s.onMessage(m.Channel, m.Payload)
		case *redis.Pong:
			s.answered(m.Payload)
		}
	}
}

// answered handles the reply to a ping. It keeps the latest reply to passed.
func (s *subscription) answered(pong string) {
	if !strings.HasPrefix(pong, passMark) {
		return
	}
	select {
	case <-s.pongs: // no caller waits for it any more
	default:
	}
	s.pongs <- pong
}

// passMark precedes the text of a ping by passed.
const passMark = "pass "

// passed returns when all messages that the server sent earlier have been received. Only one caller
// at a time may use it.
func (s *subscription) passed(ctx context.Context) error {
	s.passes++
	mark := passMark + strconv.Itoa(s.passes)
	if err := s.on.Ping(s.life, mark); err != nil {
		return clientError(err)
	}
	for {
		select {
		case pong := <-s.pongs:
			if pong == mark {
				return nil
			}
		case <-s.life.Done():
			return errEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watch pings the server. It ends with the subscription, and closes it when the server is silent.
func (s *subscription) watch(pause time.Duration) {
	every := time.NewTicker(pause)
	defer every.Stop()
	s.spoke.Store(true) // the server has confirmed
	for {
		select {
		case <-s.life.Done():
			return
		case <-every.C:
		}
		if !s.spoke.Swap(false) {
			s.close()
			return
		}
		if err := s.on.Ping(s.life); err != nil && !errors.Is(err, context.Canceled) {
			s.close()
			return
		}
	}
}

// close closes the connection, which ends both goroutines.
func (s *subscription) close() {
	s.end()
	_ = s.on.Close()
}
