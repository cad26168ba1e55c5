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

// pingEvery is how often a subscription pings the server. One
// that has said nothing since the ping before is given up.
const pingEvery = 3 * time.Second

// A subscription is a connection outside the pool, on which the server sends messages.
// go-redis would make it anew by itself, without a sign of which messages
// were missed: it ends with the first error.
type subscription struct {
	on     *redis.PubSub
	told   func(channel, message string)
	agreed chan struct{} // one for each channel
	broken chan error    // receives why no more messages come
	pongs  chan string   // holds the last answer for passed
	spoke  atomic.Bool   // the server has, since the last ping
	end    context.CancelFunc
	life   context.Context // of its goroutines
	passes int             // how often passed was called
}

func newSubscription(on *redis.PubSub, told func(channel, message string)) *subscription {
	life, end := context.WithCancel(context.Background())
	return &subscription{on: on, told: told, broken: make(chan error, 1), pongs: make(chan string, 1), life: life, end: end}
}

// begin connects and subscribes, and returns when the server has agreed. Without
// channels it only connects. After an error the subscription is to be closed.
func (s *subscription) begin(ctx context.Context, channels []string) error {
	s.agreed = make(chan struct{}, len(channels))
	defer context.AfterFunc(ctx, s.end)() // makes a connection that does not come about return
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

// listen ends with the connection.
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
			s.told(m.Channel, m.Payload)
		case *redis.Pong:
			s.answered(m.Payload)
		}
	}
}

// answered takes the answer to a ping, and keeps the last that passed waits for.
func (s *subscription) answered(pong string) {
	if !strings.HasPrefix(pong, passMark) {
		return
	}
	select {
	case <-s.pongs: // no request waits for it any more
	default:
	}
	s.pongs <- pong
}

// passMark begins what passed sends with a ping.
const passMark = "pass "

// passed returns when all has been heard that the server said before. It is for one
// caller at a time.
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

// watch ends with the subscription, and ends it when the server is silent.
func (s *subscription) watch(pause time.Duration) {
	every := time.NewTicker(pause)
	defer every.Stop()
	s.spoke.Store(true) // it has agreed
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

// close ends the connection, and with it both goroutines.
func (s *subscription) close() {
	s.end()
	_ = s.on.Close()
}
