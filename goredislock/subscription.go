package goredislock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// pingEvery is how often a subscription asks the server whether it is there. One
// that has said nothing since the ping before is given up.
const pingEvery = 3 * time.Second

// A subscription is a connection beside the pool, on which the server tells.
// go-redis would make it anew by itself, and nobody would know which messages
// were missed: it ends with the first error.
type subscription struct {
	on     *redis.PubSub
	told   func(channel, message string)
	agreed chan struct{} // one for each channel
	broken chan error    // receives why no more messages come
	spoke  atomic.Bool   // the server has, since the last ping
	end    context.CancelFunc
	life   context.Context // of its goroutines
}

func newSubscription(store *conn, told func(channel, message string)) *subscription {
	life, end := context.WithCancel(context.Background())
	s := &subscription{told: told, broken: make(chan error, 1), life: life, end: end}
	if store.cluster != nil {
		s.on = store.cluster.Subscribe(life)
	} else {
		s.on = store.single.Subscribe(life)
	}
	return s
}

// begin subscribes, and returns when the server has agreed. After an error the
// subscription is to be closed.
func (s *subscription) begin(ctx context.Context, channels []string) error {
	s.agreed = make(chan struct{}, len(channels))
	defer context.AfterFunc(ctx, s.end)() // makes a connection that does not come about return
	if err := s.on.Subscribe(s.life, channels...); err != nil {
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
