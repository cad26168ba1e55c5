package redislock

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/rediscore"
)

const (
	// laneCalls calls within laneAge that find no lane have one opened, or tested again. A lane is
	// usable for laneAge after the server's last reply on it.
	laneCalls = 8
	laneAge   = time.Second
	// laneLook is how often a call on the lane checks whether its context was cancelled.
	laneLook = 5 * time.Millisecond
)

// A lane is a connection for one call at a time. The caller writes the request and reads the reply
// itself. On the shared connection three more goroutines take part, and waking them takes as long
// as the rest of the call.
//
// A call that ends without a reply closes this connection, and disturbs no other call. A caller
// never connects: open does that in the background.
type lane struct {
	detector *detector
	opts     rueidis.ClientOption

	mu       sync.Mutex     // guards the rest
	client   rueidis.Client // nil until the lane was first opened; used only by the call or by open
	conn     *watchedConn
	peeker   *peeker // of conn
	opening  bool
	answered time.Time       // the latest reply; zero if the connection may be closed
	call     context.Context // of the call in flight; nil if there is none
	wanted   int             // calls since first that found the lane closed
	first    time.Time
	watched  bool // the timer is running
	timer    *time.Timer
}

func newLane(d *detector, opts rueidis.ClientOption) *lane {
	l := &lane{detector: d, opts: opts}
	l.opts.DialCtxFn = l.dial
	l.opts.AlwaysPipelining = false // so a caller with a deadline reads and writes itself
	l.opts.Dialer.KeepAlive = -1    // no pings: one during a call would start the client's goroutines
	l.opts.RingScaleEachConn, l.opts.ReadBufferEachConn, l.opts.WriteBufferEachConn = 1, 1<<12, 1<<12
	return l
}

// errNoLane means that the lane is closed and nothing was sent.
var errNoLane = errors.New("the connection for one call at a time is closed")

// dial connects for open. It refuses to connect for a caller.
func (l *lane) dial(ctx context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	l.mu.Lock()
	opening := l.opening
	l.mu.Unlock()
	if !opening {
		return nil, errNoLane
	}
	conn, err := l.detector.dial(ctx, addr, d, config)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn, _ = conn.(*watchedConn); l.conn != nil {
		l.peeker = newPeeker(l.conn.Conn)
	}
	return conn, err
}

// begin reserves the lane for a call. It reports whether it did, and if not, whether another call
// is in flight.
func (l *lane) begin(ctx context.Context) (reserved, inUse bool) {
	if _, limited := ctx.Deadline(); !limited {
		return false, false
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.call != nil:
		return false, true
	case l.opening:
		return false, false
	case now.Sub(l.answered) > laneAge || !l.peeker.isQuiet():
		l.answered = time.Time{}
		l.wantLocked(now)
		return false, false
	}
	l.call = ctx
	if !l.watched {
		l.watchLocked()
	}
	return true, false
}

// wantLocked counts a call that found the lane closed. After enough of them it has the lane opened.
func (l *lane) wantLocked(now time.Time) {
	if now.Sub(l.first) > laneAge {
		l.wanted, l.first = 0, now
	}
	if l.wanted++; l.wanted >= laneCalls && l.detector.life.Err() == nil {
		l.wanted, l.opening = 0, true
		go l.open()
	}
}

// open connects, or tests the existing connection. Its goroutine ends with the detector's life, or
// when the client's own time limits have passed.
func (l *lane) open() {
	ctx, cancel := context.WithTimeout(l.detector.life, dialTimeout)
	defer cancel()
	client, err := l.client, error(nil)
	if client == nil {
		client, err = newClient(ctx, l.opts)
	}
	if err == nil {
		err = client.Do(ctx, client.B().Ping().Build()).Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.client, l.opening = client, false
	if answers(err) {
		l.answered = time.Now()
	}
}

// answers reports whether the server has replied, even if with an error.
func answers(err error) bool {
	_, refused := rueidis.IsRedisErr(err)
	return err == nil || refused
}

// DirectSHA implements rediscore.Lane.
func (l *lane) DirectSHA(ctx context.Context, sha string, keys, args []string) (reply any, sent bool, err error) {
	result, sent, err := l.eval(ctx, sha, keys, args)
	if sent && err == nil {
		reply, err = decode(result)
	}
	return reply, sent, err
}

// DirectInts implements rediscore.Lane.
func (l *lane) DirectInts(ctx context.Context, sha string, keys, args []string, to []int64) (all []int64, sent bool, err error) {
	result, sent, err := l.eval(ctx, sha, keys, args)
	if sent && err == nil {
		to, err = appendInts(to, result)
	}
	return to, sent, err
}

// eval makes the call for which the lane is reserved. It reports false if nothing was sent.
func (l *lane) eval(ctx context.Context, sha string, keys, args []string) (result rueidis.RedisResult, sent bool, err error) {
	result = l.client.Do(ctx, request{sha: sha, Command: rediscore.Command{Keys: keys, Args: args}}.build(l.client))
	err = result.NonRedisError()
	l.end(err == nil)
	switch {
	case errors.Is(err, errNoLane):
		return result, false, nil
	case err != nil:
		return result, true, clientError(err)
	}
	return result, true, nil
}

func (l *lane) end(answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.call, l.answered = nil, time.Time{}
	if answered {
		l.answered = time.Now()
	}
}

func (l *lane) watchLocked() {
	l.watched = true
	if l.timer == nil {
		l.timer = time.AfterFunc(laneLook, l.look)
	} else {
		l.timer.Reset(laneLook)
	}
}

// look closes the connection if the context of the call has ended, because the caller is blocked in
// a read. It runs again until there is no call.
func (l *lane) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watched = l.call != nil; !l.watched {
		return
	}
	if l.call.Err() != nil {
		l.conn.cut()
	}
	l.watchLocked()
}
