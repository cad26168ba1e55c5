package rediscore

import (
	"context"
	"sync"
	"time"
)

// reconnect pauses before it opens a new connection; the pause doubles with each failure. If the
// server refuses, for lack of a right, it pauses for refusedPause.
const (
	minPause     = 20 * time.Millisecond
	maxPause     = time.Second
	refusedPause = time.Minute
)

// A listener is a goroutine that listens on one connection after another until life ends. It begins
// with the first call of start.
type listener struct {
	conn Conn
	life context.Context
	once sync.Once
	wg   sync.WaitGroup
}

// start starts the goroutine unless it has started. It does not block.
func (l *listener) start(listen func(Session) error) {
	l.once.Do(func() { l.wg.Go(func() { reconnect(l.life, l.conn, listen) }) })
}

// wait keeps start from starting the goroutine, and returns when the goroutine has ended.
func (l *listener) wait() {
	l.once.Do(func() {})
	l.wg.Wait()
}

// reconnect listens on one connection after another until life ends, with a pause after each. It
// closes each and does not return it to the client: a connection that may still be subscribed must
// not serve other requests.
func reconnect(life context.Context, conn Conn, listen func(Session) error) {
	pause := minPause
	for life.Err() == nil {
		began := time.Now()
		session, err := conn.Dedicate(life)
		if err == nil {
			err = listen(session)
			session.Close()
		}
		if time.Since(began) > maxPause {
			pause = minPause
		}
		if ServerSays(err) != "" {
			pause = refusedPause
		}
		select {
		case <-time.After(pause):
		case <-life.Done():
		}
		pause = min(2*pause, maxPause)
	}
}
