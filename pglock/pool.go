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
	waiting  kind = iota // may wait for a row: an acquire, and all that is not of another kind
	ending               // ends a lease: does not queue behind requests that wait
	renewing             // keeps leases or places: waits for nothing
)

// reservedToEnd of the reserved connections may end leases; the others only renew.
const (
	reserved       = 4
	reservedToEnd  = 2
	connectTimeout = 5 * time.Second
	statements     = 64 // the most that a connection has prepared
)

// When a request's context has ended, the server has grace to reply. Then the client asks it to
// cancel, and closes the connection if it has not replied within silence. After a cancel the
// connection is unused for rest, because the signal may be late.
const (
	grace   = 10 * time.Millisecond
	silence = 300 * time.Millisecond
	rest    = 100 * time.Millisecond
)

// pools has the connections of an engine. Requests that wait for a row may use up main, but never
// the reserve.
type pools struct {
	main, reserve *pgxpool.Pool
	room          chan struct{} // holds a value for each connection of main in use
	ends          chan struct{} // holds a value for each request of kind ending in the reserve
	life          context.Context
	end           context.CancelCauseFunc
	installed     *installation
}

// newPools prepares the pools. It does not connect.
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

// listenerSuffix ends the application name of a connection that listens: see tryMessages.
const listenerSuffix = " listener"

// configure makes the settings of connections. They must also work through a pooler in transaction
// mode, so a prepared statement has a name only if query asks for it. configure also records the
// server's warnings. INVARIANT I1: client_encoding is UTF-8 whatever the role has, because with
// another encoding the server would store a name as that of another lock. See also borrow.
func configure(config *pgx.ConnConfig) {
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = statements, 0
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "holdfast"
	}
	config.RuntimeParams["client_encoding"] = encoding
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

// close ends all requests and closes all connections.
func (p *pools) close() {
	p.end(driver.ErrClosed)
	p.main.Close()
	p.reserve.Close()
}

// query sends one statement and reads its rows. Its error is definite if the statement was not
// carried out. Unless there is a pooler, each connection prepares a statement once: parsing and
// planning it takes the server longer than running it.
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

// run lends a connection to do. The context that do gets does not end: run makes the request end
// soon after ctx, and keeps the connection open.
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
	if server.IsClosed() { // the cause may have ended the others too
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

// borrow returns a connection, and a function that returns it. It fails if a hook has set another
// client_encoding, or has left a transaction open. INVARIANT I1.
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
	giveBack := func() {
		conn.Release()
		leave()
	}
	server := conn.Conn().PgConn()
	if set := server.ParameterStatus("client_encoding"); set != encoding && set != "" { // the server reports each change
		giveBack()
		return nil, nil, fmt.Errorf("%w pool: a hook sets the client_encoding of its connections to %s, with which a name would be another lock: leave it at %s",
			driver.ErrInvalid, set, encoding)
	}
	if server.TxStatus() != 'I' { // no request would be committed
		giveBack()
		return nil, nil, fmt.Errorf("%w pool: a hook leaves a transaction open on its connections", driver.ErrInvalid)
	}
	return conn, giveBack, nil
}

// choose returns the pool from which to take a connection, and the channel that counts it; nil if
// ctx ends.
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

// interrupt ends the request in progress on a connection, unless it ends soon by itself. pgx itself
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
