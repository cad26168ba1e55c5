package pglock

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-locks/holdfast/driver"
)

// A kind of request decides which connections it may use.
type kind int

const (
	waiting  kind = iota // it may wait for a row: an acquire, and whatever else
	ending               // it ends a lease: it does not wait behind those that wait
	renewing             // it keeps leases or places: it waits for nothing
)

// Of the connections in reserve, as many may end leases; the others only renew.
const (
	reserved       = 4
	reservedToEnd  = 2
	connectTimeout = 5 * time.Second
	statements     = 64 // at most, that a connection has prepared
)

// How a request ends whose context has ended: the server has grace to answer, is then
// asked to cancel, and loses the connection if it has not answered when silence is over.
// After a cancel the connection rests for as long as the signal may be late.
const (
	grace   = 10 * time.Millisecond
	silence = 300 * time.Millisecond
	rest    = 100 * time.Millisecond
)

// pools are the connections of an engine. What waits for a row may use up main, and never
// the reserve.
type pools struct {
	main, reserve *pgxpool.Pool
	room          chan struct{} // has a value for each connection of main in use
	ends          chan struct{} // has a value for each request of kind ending in the reserve
	life          context.Context
	end           context.CancelCauseFunc
	installed     *installation
}

// newPools prepares the connections, and makes none.
func newPools(config *pgxpool.Config, opts *Options) (*pools, error) {
	config = config.Copy()
	configure(config.ConnConfig)
	config.MinConns, config.MinIdleConns = 0, 0
	p := &pools{
		room: make(chan struct{}, config.MaxConns), ends: make(chan struct{}, reservedToEnd),
		installed: newInstallation(config.ConnConfig, opts),
	}
	p.life, p.end = context.WithCancelCause(context.Background())
	var err error
	if p.main, err = pgxpool.NewWithConfig(p.life, config); err != nil {
		return nil, err
	}
	config = config.Copy()
	config.MaxConns = reserved
	if p.reserve, err = pgxpool.NewWithConfig(p.life, config); err != nil {
		p.main.Close()
		return nil, err
	}
	return p, nil
}

// listenerSuffix ends the application name of connections that listen: see tryMessages.
const listenerSuffix = " listener"

// configure makes connections that work through a pooler in transaction mode too: a prepared
// statement has a name only if query asks for it. It also sees to the warnings of the server.
// INVARIANT I1: a name is UTF-8, whatever client_encoding the role has: with another one the
// server would store it as the name of another lock.
func configure(config *pgx.ConnConfig) {
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = statements, 0
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	config.RuntimeParams["client_encoding"] = "UTF8"
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "holdfast"
	}
	others := config.OnNotice
	config.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		if n.Code == warning {
			conn.CustomData()[warning] = true
		}
		if others != nil {
			others(conn, n)
		}
	}
}

// close ends all requests and all connections.
func (p *pools) close() {
	p.end(driver.ErrClosed)
	p.main.Close()
	p.reserve.Close()
}

// query sends one statement and reads its rows. Its error is definite if the statement was
// not carried out. Each connection prepares a statement once, unless there is a pooler: to
// parse and plan it takes the server longer than to carry it out.
func (p *pools) query(ctx context.Context, k kind, sql string, args []any, read func(pgx.Rows) error) error {
	if err := p.ready(ctx); err != nil {
		return err
	}
	if p.installed.direct.Load() {
		args = append([]any{pgx.QueryExecModeCacheStatement}, args...)
	}
	return p.run(ctx, k, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := read(rows); err != nil {
				return fmt.Errorf("read the reply: %w", err)
			}
		}
		return rows.Err()
	})
}

// run lends a connection to do. The context that do gets does not end: run sees to it that
// the request ends soon after ctx, and that the connection outlives it.
func (p *pools) run(ctx context.Context, k kind, do func(context.Context, *pgx.Conn) error) error {
	if p.life.Err() != nil {
		return driver.ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.life, func() { cancel(driver.ErrClosed) })()
	conn, giveBack, err := p.borrow(ctx, k)
	if err != nil {
		return err
	}
	server := conn.Conn().PgConn()
	delete(server.CustomData(), warning)
	over, rested := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(rested)
		interrupt(server, over)
	})
	err = do(context.WithoutCancel(ctx), conn.Conn())
	close(over)
	if _, warned := server.CustomData()[warning]; warned && err == nil {
		err = errNotReplicated
	}
	if server.IsClosed() { // what has ended this one may have ended the others
		p.main.Reset()
		p.reserve.Reset()
	}
	err = p.failure(ctx, err)
	if stop() {
		giveBack()
	} else {
		go func() {
			<-rested
			giveBack()
		}()
	}
	return err
}

// borrow returns a connection, and what gives it back.
func (p *pools) borrow(ctx context.Context, k kind) (*pgxpool.Conn, func(), error) {
	pool, slots := p.choose(ctx, k)
	if pool == nil {
		return nil, nil, interrupted(ctx)
	}
	leave := func() {
		if slots != nil {
			<-slots
		}
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		leave()
		return nil, nil, p.connectError(ctx, err)
	}
	return conn, func() {
		conn.Release()
		leave()
	}, nil
}

// choose returns the pool to take a connection from, and the channel that counts this one;
// or nil if ctx ends.
func (p *pools) choose(ctx context.Context, k kind) (pool *pgxpool.Pool, slots chan struct{}) {
	if ctx.Err() != nil {
		return nil, nil
	}
	select {
	case p.room <- struct{}{}:
		return p.main, p.room
	default:
	}
	var ends chan struct{}
	switch k {
	case renewing:
		return p.reserve, nil
	case ending:
		ends = p.ends
	}
	select {
	case p.room <- struct{}{}:
		return p.main, p.room
	case ends <- struct{}{}:
		return p.reserve, ends
	case <-ctx.Done():
		return nil, nil
	}
}

// interrupt ends the request under way on a connection, if it is not over soon. pgx itself
// would close the connection.
func interrupt(server *pgconn.PgConn, over <-chan struct{}) {
	select {
	case <-over:
		return
	case <-time.After(grace):
	}
	_ = server.Conn().SetDeadline(time.Now().Add(silence))
	ctx, cancel := context.WithTimeout(context.Background(), silence)
	defer cancel()
	_ = server.CancelRequest(ctx)
	<-over
	time.Sleep(rest)
	_ = server.Conn().SetDeadline(time.Time{})
}
