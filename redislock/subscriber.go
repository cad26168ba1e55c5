package redislock

import (
	"cmp"
	"context"
	"io"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
)

// The pause before a lost subscription is made anew, doubled with each
// failure. A watch that waits for its first confirmation is told at once.
const (
	minPause = 20 * time.Millisecond
	maxPause = time.Second
)

// A subscriber keeps the one connection on which an engine hears of releases.
// Callers only say which channels they want; the goroutine of run alone
// subscribes and unsubscribes, so that these cannot overtake one another.
type subscriber struct {
	client rueidis.Client
	life   context.Context
	start  sync.Once
	wg     sync.WaitGroup // of run
	wake   chan struct{}  // holds one signal: topics has changed

	mu     sync.Mutex        // guards topics, and the fields of each topic and attempt
	topics map[string]*topic // by channel; each has a watch
}

func newSubscriber(client rueidis.Client, life context.Context) *subscriber {
	return &subscriber{client: client, life: life, wake: make(chan struct{}, 1), topics: map[string]*topic{}}
}

// add starts a watch, and the connection if this is the first.
func (s *subscriber) add(channel string) *watch {
	s.mu.Lock()
	t := s.topics[channel]
	if t == nil {
		t = &topic{channel: channel, watches: map[*watch]struct{}{}, attempt: newAttempt()}
		s.topics[channel] = t
	}
	w := &watch{subs: s, topic: t, c: make(chan struct{}, 1)}
	t.watches[w] = struct{}{}
	s.mu.Unlock()
	s.start.Do(func() { s.wg.Go(s.run) })
	s.changed()
	return w
}

// await blocks until the channel of w is subscribed to.
func (s *subscriber) await(ctx context.Context, w *watch) error {
	s.mu.Lock()
	attempt := w.topic.attempt
	s.mu.Unlock()
	select {
	case <-attempt.done:
		return attempt.err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.life.Done():
		return driver.ErrClosed
	}
}

func (s *subscriber) remove(w *watch) {
	s.mu.Lock()
	delete(w.topic.watches, w)
	if len(w.topic.watches) == 0 {
		delete(s.topics, w.topic.channel)
	}
	s.mu.Unlock()
	s.changed()
}

func (s *subscriber) changed() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// wait returns when run has ended, and keeps add from starting it later.
func (s *subscriber) wait() {
	s.start.Do(func() {})
	s.wg.Wait()
}

// run makes connections until life is over. It is started by the first add
// and waited for by Close.
func (s *subscriber) run() {
	pause := minPause
	for s.life.Err() == nil {
		began := time.Now()
		err := s.session()
		s.lost(err)
		if time.Since(began) > maxPause {
			pause = minPause
		}
		select {
		case <-time.After(pause):
		case <-s.life.Done():
		}
		pause = min(2*pause, maxPause)
	}
}

// session serves the topics on one connection, until it breaks.
func (s *subscriber) session() error {
	// Closed and not given back: nobody else must get a connection that may
	// still have subscriptions.
	conn, _ := s.client.Dedicate()
	defer conn.Close()
	broken := conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: s.message})
	subscribed := map[string]bool{} // on this connection
	for {
		if err := s.adjust(conn, subscribed); err != nil {
			return err
		}
		select {
		case <-s.wake:
		case err := <-broken:
			return clientError(cmp.Or(err, io.EOF))
		case <-s.life.Done():
			return errClosing
		}
	}
}

// adjust makes the subscriptions of the connection those that are wanted. It
// returns an error if the connection is of no use any more.
func (s *subscriber) adjust(conn rueidis.DedicatedClient, subscribed map[string]bool) error {
	missing, unwanted := s.difference(subscribed)
	if len(unwanted) > 0 {
		err := conn.Do(s.life, conn.B().Unsubscribe().Channel(unwanted...).Build()).NonRedisError()
		if err != nil {
			return clientError(err)
		}
		for _, channel := range unwanted {
			delete(subscribed, channel)
		}
	}
	// One command each: the server refuses a command as a whole.
	commands := make(rueidis.Commands, len(missing))
	for i, channel := range missing {
		commands[i] = conn.B().Subscribe().Channel(channel).Build()
	}
	for i, reply := range conn.DoMulti(s.life, commands...) {
		err := reply.Error()
		if reply.NonRedisError() != nil {
			return clientError(err)
		}
		if err == nil {
			subscribed[missing[i]] = true
		}
		s.answer(missing[i], err)
	}
	return nil
}

// difference returns what to subscribe to and what to unsubscribe from. It
// confirms the topics whose channel was never given up.
func (s *subscriber) difference(subscribed map[string]bool) (missing, unwanted []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel, t := range s.topics {
		if subscribed[channel] {
			t.attempt.finish(nil)
		} else {
			missing = append(missing, channel)
		}
	}
	for channel := range subscribed {
		if s.topics[channel] == nil {
			unwanted = append(unwanted, channel)
		}
	}
	return missing, unwanted
}

// answer ends the attempt of a channel, if it is still wanted: with success,
// or with the server's refusal.
func (s *subscriber) answer(channel string, refusal error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	switch {
	case t == nil:
	case refusal != nil:
		t.attempt.finish(clientError(refusal))
		t.attempt = newAttempt()
	default:
		t.attempt.finish(nil)
		if t.lost {
			t.lost = false
			t.signalLocked()
		}
	}
}

// lost tells those who wait for a confirmation that the connection failed,
// and makes those who come later wait for the next one.
func (s *subscriber) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.topics {
		if t.attempt.over {
			t.lost = true // it was confirmed: a message may be missed from now on
		}
		t.attempt.finish(err)
		t.attempt = newAttempt()
	}
}

// message runs in the connection's reading goroutine and must not block.
func (s *subscriber) message(m rueidis.PubSubMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[m.Channel]; t != nil {
		t.signalLocked()
	}
}

// signalLocked wakes the watches of t.
func (t *topic) signalLocked() {
	for w := range t.watches {
		w.signal()
	}
}
