package pglock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// An ear is an engine's connection for notifications. It is opened for the first place, the first
// lease that is held for longer than short work, or the first feed, and opened again after a
// failure. The engine then checks for what it may have missed.
type ear struct {
	once sync.Once
	warn sync.Once
	wake atomic.Pointer[context.CancelFunc] // ends a wait for notifications
}

// wakeEar makes the ear check whether there are callers that listen for events.
func (e *engine) wakeEar() {
	if wake := e.ear.wake.Load(); wake != nil {
		(*wake)()
	}
}

const (
	// hearingTest is how often a connection that receives nothing sends itself a notification,
	// and hearingTime is how long that may take to arrive.
	hearingTest = 20 * time.Second
	hearingTime = 5 * time.Second

	deafRest = time.Minute // until the next attempt of an ear that receives no notifications
)

var errDeaf = errors.New("the server does not send notifications to this connection")

// listenLater starts the ear, once.
func (e *engine) listenLater() {
	e.ear.once.Do(func() { e.spawn(e.hear) })
}

// hear listens until Close.
func (e *engine) hear() {
	rest := 50 * time.Millisecond
	for lastBroken := int64(-1); ; {
		began := time.Now()
		err := e.listenOnce(&lastBroken)
		e.feed.lost()
		switch {
		case e.life.Err() != nil:
			return
		case time.Since(began) > 2*hearingTime: // it received some: if it was cut, another one will
			rest = 50 * time.Millisecond
		case errors.Is(err, errDeaf):
			e.ear.warn.Do(func() {
				e.opts.Logger.Warn("holdfast: notifications of PostgreSQL do not arrive, so that waiters poll: if there is a pooler, set listen=URL to a direct connection")
			})
			rest = deafRest
		default:
			rest = min(2*rest, hearingTime)
		}
		if !ask.Sleep(e.life, rest/2+rand.N(rest)) {
			return
		}
	}
}

// listenOnce opens the connection and listens until it fails.
func (e *engine) listenOnce(lastBroken *int64) error {
	ctx, cancel := context.WithTimeout(e.life, connectTimeout)
	defer cancel()
	conn, err := e.connectListener(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	l := &listening{engine: e, conn: conn, lastBroken: lastBroken}
	if err := l.begin(ctx); err != nil {
		return err
	}
	for {
		if err := l.hearNext(); err != nil {
			return err
		}
	}
}

// connectListener opens a connection for notifications. The hook of a pool may set a password that
// changes.
func (e *engine) connectListener(ctx context.Context) (*pgx.Conn, error) {
	config := e.listen.Copy()
	if before := e.main.Config().BeforeConnect; before != nil && e.opts.Listen == "" {
		if err := before(ctx, config); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, config)
}

// A listening is one connection that listens.
type listening struct {
	*engine
	conn       *pgx.Conn
	lastBroken *int64 // number of the latest reported broken lease
	feeding    bool   // it listens for events
	renewed    time.Time
}

// begin listens for everything but events, checks that notifications arrive, and checks for all
// that may have been missed.
func (l *listening) begin(ctx context.Context) error {
	if err := l.exec(ctx, "LISTEN "+l.channel(l.inbox)+"; LISTEN "+l.channel(breaks)); err != nil {
		return err
	}
	if err := l.test(ctx); err != nil {
		return err
	}
	l.watches.TellAll()
	if *l.lastBroken >= 0 { // some may have been committed late
		last, err := l.readBroken(ctx, "seq > $1", *l.lastBroken-driver.MaxBatch)
		*l.lastBroken = max(last, *l.lastBroken)
		return err
	}
	return l.query(ctx, renewing, "SELECT COALESCE(pg_catalog.max(seq), 0) FROM "+l.name+".broken", nil, func(rows pgx.Rows) error {
		return rows.Scan(l.lastBroken)
	})
}

func (l *listening) exec(ctx context.Context, sql string) error {
	_, err := l.conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// test sends itself a notification over another connection, and waits for it. Over the same
// connection it would prove nothing, because a pooler may pass that one on.
func (l *listening) test(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, hearingTime)
	defer cancel()
	nonce := string(lockinfo.NewLeaseID())
	if err := l.tryNotify(ctx, []message{{l.channel(l.inbox), nonce}}); err != nil {
		return err
	}
	for {
		n, err := l.conn.WaitForNotification(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return errDeaf
		case err != nil:
			return err
		case n.Payload == nonce:
			return nil
		}
		if err := l.heard(n); err != nil {
			return err
		}
	}
}

// hearNext waits for one notification, at most for hearingTest.
func (l *listening) hearNext() error {
	ctx, cancel := context.WithTimeout(l.life, hearingTest)
	defer cancel()
	l.ear.wake.Store(&cancel)
	if err := l.followFeed(); err != nil {
		return err
	}
	n, err := l.conn.WaitForNotification(ctx)
	switch {
	case err == nil:
		return l.heard(n)
	case l.life.Err() != nil || l.conn.IsClosed():
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return l.test(l.life)
	}
	return nil // woken
}

// heard handles a notification.
func (l *listening) heard(n *pgconn.Notification) error {
	switch n.Channel {
	case l.channel(breaks):
		if inbox, seqs, _ := strings.Cut(n.Payload, " "); inbox != l.inbox { // its own are notified already
			last, _ := l.readBroken(l.life, "seq = ANY ($1::text::bigint[])", "{"+strings.ReplaceAll(seqs, " ", ",")+"}")
			*l.lastBroken = max(last, *l.lastBroken)
		}
	case l.channel(events):
		return l.feedEvents(n.Payload)
	default:
		var id lockinfo.LeaseID
		var token uint64
		if _, err := fmt.Sscan(n.Payload, &id, &token); err == nil {
			l.watches.Tell(id, driver.Notice{Token: token})
		}
	}
	return nil
}
