package redislock

import (
	"context"
	_ "embed"
	"fmt"
	"iter"
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
)

var (
	//go:embed member.lua
	memberLua string
	//go:embed member_propose.lua
	proposeLua string
	//go:embed member_renew.lua
	renewLua string
	//go:embed member_withdraw.lua
	withdrawLua string
	//go:embed member_admit.lua
	admitLua string
)

// A Member is one Redis or Valkey server as a member of a quorum; see package
// quorumlock. Use OpenMember or NewMember to make one. It keeps leases under
// the same keys as an Engine, so that both exclude each other, but a name
// should be used through one of the two only: whoever waits in an Engine's queue
// is not told when a Member ends a lease.
//
// The server must be a master of its own, with no replica of another member,
// and not part of a Redis Cluster. It has one key more than the package's
// documentation lists, which says until when it is in quarantine:
// Pholdfast:{member}:marker. Besides evalsha, eval, exists, get, set, del,
// pttl, pexpire and time, the user needs the right to info.
//
// It is safe for concurrent use.
type Member struct {
	url string // of OpenMember

	propose, renew, withdraw, admit *script

	losses driver.Losses // of the engine's, once there is one

	mu     sync.Mutex // guards the rest
	engine *Engine    // nil until the server has been reached
	dial   *dialing   // the attempt to reach it that is under way, or nil
	closed bool
}

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

// OpenMember returns a member on the server of a URL, as Open takes it. It does
// not wait for the server: one that cannot be reached makes requests fail with
// ErrUnavailable until it can, so that a quorum can be used while some of its
// members are down. A URL of another form is ErrInvalid.
func OpenMember(rawURL string) (*Member, error) {
	if _, _, err := parseURL(rawURL); err != nil {
		return nil, err
	}
	m := newMember()
	m.url = rawURL
	return m, nil
}

// NewMember returns a member on an engine's server. Close closes the engine.
func NewMember(e *Engine) *Member {
	m := newMember()
	m.use(e)
	return m
}

func newMember() *Member {
	load := func(text string) *script {
		return newScript(valueLua, clockLua, memberLua, text)
	}
	return &Member{propose: load(proposeLua), renew: load(renewLua), withdraw: load(withdrawLua), admit: load(admitLua)}
}

// connect returns the engine. It fails, certain that nothing was sent, if the
// server cannot be reached before ctx ends.
func (m *Member) connect(ctx context.Context) (*Engine, error) {
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
		return e, e.checkMember()
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
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	dial := &dialing{done: make(chan struct{}), cancel: cancel}
	m.dial = dial
	go func() {
		e, err := Open(ctx, m.url)
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
func (m *Member) use(e *Engine) {
	m.engine = e
	e.OnLoss(m.losses.Tell) // until both are closed
}

// checkMember refuses stores that cannot be a member.
func (e *Engine) checkMember() error {
	if e.conn.Mode() == InCluster {
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
	return e.breakLeases(ctx, req, 2*driver.MaxTokenLead)
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
	return func(yield func(driver.Lock, error) bool) { yield(driver.Lock{}, err) }
}
