// Package member is one Redis or Valkey server as a member of a quorum; see
// package quorumlock.
//
//	member.go    New, On, Close; reaches the server when it is needed
//	requests.go  Propose, Renew, Withdraw, Admit, Check
//	reply.go     what their scripts reply
package member

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// A member is one Redis or Valkey server as a member of a quorum; see package quorumlock. Use New
// or On to make one. It uses the same keys as a rediscore.Engine, so that the two exclude each
// other. A name should still be used through only one of them: a waiter in an Engine's queue
// receives no message when a member ends a lease.
//
// The server must be a master of its own, not in a Redis Cluster or behind Sentinel, and must not
// have a replica that is another member. It has one key in addition to those in the package's documentation,
// Pholdfast:{member}:marker, which records the end of its quarantine. Besides evalsha, eval,
// exists, get, set, del, pttl, pexpire and time, the user needs the right to info.
//
// It is safe for concurrent use.
type member struct {
	addr    string // of the server; "" if the engine knows it
	open    func(context.Context) (*rediscore.Engine, error)
	scripts lua.Member

	losses driver.Losses // those of engine, once there is one

	mu     sync.Mutex        // guards the rest
	engine *rediscore.Engine // nil until the server has been reached
	dial   *dialing          // the attempt in progress, or nil
	closed bool
}

// dialLimit bounds one attempt to connect.
const dialLimit = 3 * time.Second

// A dialing is one attempt to connect.
type dialing struct {
	done   chan struct{} // closed when it has ended
	cancel context.CancelFunc
	err    error // valid when done is closed
}

var (
	_ driver.Member     = (*member)(nil)
	_ driver.Lister     = (*member)(nil)
	_ driver.Breaker    = (*member)(nil)
	_ driver.LossTeller = (*member)(nil)
)

// New returns a member on a server. The member calls open to connect when it needs the server.
// While the server is unreachable, requests fail with ErrUnavailable. addr is the member's name. If
// the engine is not of package redislock or goredislock, requests fail with ErrInvalid.
func New(addr string, open func(context.Context) (driver.Engine, error)) driver.Member {
	return &member{addr: addr, scripts: lua.ForMember(), open: func(ctx context.Context) (*rediscore.Engine, error) {
		e, err := open(ctx)
		if err != nil {
			return nil, err
		}
		return inRedis(e)
	}}
}

// On returns a member on an engine's server. The member's Close closes the engine. If the engine is
// not of package redislock or goredislock, the error wraps driver.ErrInvalid.
func On(e driver.Engine) (driver.Member, error) {
	found, err := inRedis(e)
	if err != nil {
		return nil, err
	}
	m := &member{scripts: lua.ForMember()}
	m.use(found)
	return m, nil
}

func inRedis(e driver.Engine) (*rediscore.Engine, error) {
	found, ok := e.(interface{ InRedis() *rediscore.Engine })
	if !ok {
		return nil, fmt.Errorf("%w engine: %T has no keys in Redis: want one of package redislock or goredislock", driver.ErrInvalid, e)
	}
	return found.InRedis(), nil
}

// connect returns the engine. If the server cannot be reached before ctx ends, it returns an error
// that says that nothing was sent.
func (m *member) connect(ctx context.Context) (*rediscore.Engine, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	switch {
	case m.closed:
		m.mu.Unlock()
		return nil, driver.ErrClosed
	case m.engine != nil:
		e := m.engine
		m.mu.Unlock()
		return e, checkMember(e)
	case m.dial == nil:
		m.startDial()
	}
	dial := m.dial
	m.mu.Unlock()
	select {
	case <-dial.done:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: there is no connection yet: %w", driver.ErrUnavailable, ctx.Err())
	}
	if dial.err != nil {
		return nil, dial.err
	}
	return m.connect(ctx)
}

// startDial starts an attempt to connect. m.mu is held.
func (m *member) startDial() {
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	dial := &dialing{done: make(chan struct{}), cancel: cancel}
	m.dial = dial
	go func() {
		e, err := m.open(ctx)
		cancel()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.dial = nil
		if dial.err = err; err == nil && m.closed {
			_ = e.Close()
		} else if err == nil {
			m.use(e)
		}
		close(dial.done)
	}()
}

// use makes e the member's engine. m.mu is held, or no other goroutine knows m.
func (m *member) use(e *rediscore.Engine) {
	m.engine = e
	e.OnLoss(m.losses.Tell) // until both are closed
}

// checkMember returns an error if the store cannot be a member.
func checkMember(e *rediscore.Engine) error {
	if e.Store().Conn().Mode() != rediscore.OneServer {
		return fmt.Errorf("%w member: it is a Redis Cluster or behind Sentinel, where a replica may take over while some clients still use its master: use servers of their own", driver.ErrInvalid)
	}
	return nil
}

// Close implements driver.Member.
func (m *member) Close() error {
	m.mu.Lock()
	m.closed = true
	e, dial := m.engine, m.dial
	m.mu.Unlock()
	if dial != nil {
		dial.cancel()
		<-dial.done
	}
	if e == nil {
		return nil
	}
	return e.Close()
}

// String returns the address of the server, without credentials.
func (m *member) String() string {
	if m.addr != "" {
		return m.addr
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.engine == nil {
		return ""
	}
	return strings.Join(slices.Sorted(maps.Keys(m.engine.Store().Conn().Nodes())), ",")
}

// Capabilities implements driver.Member. A quorum has no use for the engine's other capabilities.
func (m *member) Capabilities() driver.Capabilities {
	return driver.Capabilities{Break: true, Losses: true, List: true}
}

// on calls f with the engine.
func on[T any](ctx context.Context, m *member, f func(*rediscore.Engine) (T, error)) (none T, err error) {
	e, err := m.connect(ctx)
	if err != nil {
		return none, err
	}
	return f(e)
}

// Inspect implements driver.Member.
func (m *member) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	return on(ctx, m, func(e *rediscore.Engine) (lockinfo.LockState, error) { return e.Inspect(ctx, name) })
}

// Break implements driver.Breaker. It lifts the counter, as a member must.
func (m *member) Break(ctx context.Context, req driver.BreakRequest) ([]lockinfo.Broken, error) {
	return on(ctx, m, func(e *rediscore.Engine) ([]lockinfo.Broken, error) {
		return e.BreakAndLift(ctx, req, 2*driver.MaxTokenLead)
	})
}

// Breaks implements driver.Breaker.
func (m *member) Breaks(ctx context.Context, name string) ([]lockinfo.Broken, error) {
	return on(ctx, m, func(e *rediscore.Engine) ([]lockinfo.Broken, error) { return e.Breaks(ctx, name) })
}

// OnLoss implements driver.LossTeller.
func (m *member) OnLoss(listener func(driver.Loss)) (stop func()) { return m.losses.OnLoss(listener) }

// List implements driver.Lister.
func (m *member) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	e, err := m.connect(ctx)
	if err == nil {
		return e.List(ctx, prefix)
	}
	return driver.Listed(func() ([]lockinfo.LockState, error) { return nil, err })
}
