// Package member is one Redis or Valkey server as a member of a quorum; see
// package quorumlock.
//
//	member.go    New, On, Close; reaches the server when it is needed
//	requests.go  Propose, Renew, Withdraw, Admit
//	reply.go     what their scripts reply
//	check.go     whether the server is fit to be a member
package member

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// A Member is one Redis or Valkey server as a member of a quorum; see package
// quorumlock. Use New or On to make one. It keeps leases under the same keys as
// a rediscore.Engine, so that both exclude each other, but a name should be used
// through one of the two only: whoever waits in an Engine's queue is not told
// when a Member ends a lease.
//
// The server must be a master of its own, with no replica of another member,
// and not part of a Redis Cluster. It has one key more than the package's
// documentation lists, which says until when it is in quarantine:
// Pholdfast:{member}:marker. Besides evalsha, eval, exists, get, set, del,
// pttl, pexpire and time, the user needs the right to info.
//
// It is safe for concurrent use.
type Member struct {
	addr    string // of the server; "" if the engine knows it
	open    func(context.Context) (*rediscore.Engine, error)
	scripts lua.Member

	losses driver.Losses // of the engine's, once there is one

	mu     sync.Mutex        // guards the rest
	engine *rediscore.Engine // nil until the server has been reached
	dial   *dialing          // the attempt to reach it that is under way, or nil
	closed bool
}

// dialLimit bounds one attempt to connect.
const dialLimit = 3 * time.Second

// A dialing is one attempt to connect.
type dialing struct {
	done   chan struct{} // closed when it is over
	cancel context.CancelFunc
	err    error // to be read when it is over
}

var (
	_ driver.Member     = (*Member)(nil)
	_ driver.Lister     = (*Member)(nil)
	_ driver.Breaker    = (*Member)(nil)
	_ driver.LossTeller = (*Member)(nil)
)

// New returns a member on a server that open connects to when it is needed. One
// that cannot be reached makes requests fail with ErrUnavailable until it can.
// addr is what the member is called.
func New(addr string, open func(context.Context) (*rediscore.Engine, error)) *Member {
	return &Member{addr: addr, open: open, scripts: lua.ForMember()}
}

// On returns a member on an engine's server. Close closes the engine.
func On(e *rediscore.Engine) *Member {
	m := New("", nil)
	m.use(e)
	return m
}

// connect returns the engine. It fails, certain that nothing was sent, if the
// server cannot be reached before ctx ends.
func (m *Member) connect(ctx context.Context) (*rediscore.Engine, error) {
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

// startDial tries to reach the server. m.mu is held.
func (m *Member) startDial() {
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

// use makes e the member's engine. m.mu is held, or nobody else knows m.
func (m *Member) use(e *rediscore.Engine) {
	m.engine = e
	e.OnLoss(m.losses.Tell) // until both are closed
}

// checkMember refuses stores that cannot be a member.
func checkMember(e *rediscore.Engine) error {
	if e.Store().Conn().Mode() == rediscore.InCluster {
		return fmt.Errorf("%w member: it is a Redis Cluster, whose masters lose their memory one by one: use servers of their own", driver.ErrInvalid)
	}
	return nil
}

// Close implements driver.Member.
func (m *Member) Close() error {
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

// Capabilities implements driver.Member. What an Engine can do besides is of no
// use in a quorum.
func (m *Member) Capabilities() driver.Capabilities {
	return driver.Capabilities{Break: true, Losses: true, List: true}
}

// Inspect implements driver.Member.
func (m *Member) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	e, err := m.connect(ctx)
	if err != nil {
		return driver.Lock{}, err
	}
	return e.Inspect(ctx, name)
}

// Break implements driver.Breaker, with the member's duty to the counter.
func (m *Member) Break(ctx context.Context, req driver.BreakRequest) ([]driver.Broken, error) {
	e, err := m.connect(ctx)
	if err != nil {
		return nil, err
	}
	return e.BreakAndLift(ctx, req, 2*driver.MaxTokenLead)
}

// Breaks implements driver.Breaker.
func (m *Member) Breaks(ctx context.Context, name string) ([]driver.Broken, error) {
	e, err := m.connect(ctx)
	if err != nil {
		return nil, err
	}
	return e.Breaks(ctx, name)
}

// OnLoss implements driver.LossTeller.
func (m *Member) OnLoss(told func(driver.Loss)) (stop func()) { return m.losses.OnLoss(told) }

// List implements driver.Lister.
func (m *Member) List(ctx context.Context, prefix string) iter.Seq2[driver.Lock, error] {
	e, err := m.connect(ctx)
	if err == nil {
		return e.List(ctx, prefix)
	}
	return driver.Listed(func() ([]driver.Lock, error) { return nil, err })
}
