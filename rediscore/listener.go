package rediscore

import (
	"context"
	"sync"
	"time"
)

// The pause before a connection that listens is made anew, doubled with each
// failure. A server that refuses it, for want of a right, is asked rarely.
const (
	minPause     = 20 * time.Millisecond
	maxPause     = time.Second
	refusedPause = time.Minute
)

// A listener is a goroutine that listens on one connection after the other until life
// ends. It begins with the first call of start.
type listener struct {
	conn Conn
	life context.Context
	once sync.Once
	wg   sync.WaitGroup
}

// start makes sure that the goroutine runs. It does not block.
func (l *listener) start(listen func(Session) error) {
	l.once.Do(func() { l.wg.Go(func() { reconnect(l.life, l.conn, listen) }) })
}

// wait returns when the goroutine has ended, and keeps start from starting it later.
func (l *listener) wait() {
	l.once.Do(func() {})
	l.wg.Wait()
}

// reconnect listens on one connection after the other until life ends, with a pause after
// each. Each is closed and not given back: no other request must get a connection that
// may still have a subscription.
func reconnect(life context.Context, conn Conn, listen func(Session) error) {
	pause := minPause
	for life.Err() == nil {
		began := time.Now()
		session := conn.Dedicate()
		refused := ServerSays(listen(session)) != ""
		session.Close()
		if time.Since(began) > maxPause {
			pause = minPause
		}
		if refused {
			pause = refusedPause
		}
		select {
		case <-time.After(pause):
		case <-life.Done():
		}
		pause = min(2*pause, maxPause)
	}
}
