package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/places"
	"github.com/holdfast-locks/holdfast/internal/tell"
)

// A Client takes locks from one store. Make one with New and share it: all
// its leases are kept alive together, in batches.
type Client struct {
	engine    driver.Engine
	features  driver.Features // of the engine
	opts      Options
	holderErr error      // what is wrong with opts.Holder, which is told by each acquire
	events    tell.Queue // for the Observer
	logs      tell.Queue // for the log
	boot      bootReader
	leases    leaseKeeper
	places    places.Keeper[instant]
	turns     *turns        // nil if the engine has a queue
	closing   chan struct{} // closed by Close: waiting ends
	deafen    func()        // no more messages about losses

	// background ends when Close gives up waiting; clean-ups run on it.
	background context.Context
	abandon    context.CancelFunc

	// pending counts the goroutines that spawn has started, and acquisitions and
	// releases that still run. They may begin while Close waits for the others,
	// which a sync.WaitGroup does not allow.
	pending atomic.Int64
	closed  atomic.Bool
	idle    chan struct{} // closed when the client is closed and nothing is pending
	rest    sync.Once     // closes idle
}

// New returns a client of the store that engine is open on. It sends nothing.
// It returns an error that wraps ErrInvalid if an option is out of range, if the
// engine is nil, or if it lacks methods that its capabilities promise, as a wrapper does that
// embeds only driver.Engine: it should embed driver.Forward. The caller must
// Close the client, and the engine after it.
func New(engine driver.Engine, opts *Options) (*Client, error) {
	o := opts.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("holdfast: new client: %w", err)
	}
	features, err := driver.FeaturesOf(engine)
	if err != nil {
		return nil, fmt.Errorf("holdfast: new client: %w", err)
	}
	o.Holder.Reason, o.Holder.Labels = "", nil // each acquisition has its own
	o.Holder.Once = false
	background, abandon := context.WithCancel(context.Background())
	c := &Client{
		engine: engine, features: features, opts: o, holderErr: driver.CheckHolder(o.Holder),
		background: background, abandon: abandon,
		closing: make(chan struct{}), idle: make(chan struct{}),
	}
	c.events.Init(o.Observer, o.Logger)
	c.logs.Init(tell.NewLogger(o.Logger), o.Logger)
	c.boot.init(systemBootClock(), bootFresh)
	c.leases.init(c)
	c.places.Init(places.Owner[instant]{
		Queuer: features.Queuer, Router: features.Router, Now: c.now, Spawn: c.spawn, Limit: c.requestContext,
	})
	if features.Queuer == nil {
		c.turns = newTurns()
	}
	c.deafen = c.hear()
	return c, nil
}

// requestContext bounds one request to the store.
func (c *Client) requestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return ask.Limit(ctx, c.opts.RequestTimeout)
}

// errNoClient is for a client that New has not made.
var errNoClient = fmt.Errorf("%w client: it is nil, or New has not made it", ErrInvalid)

// check returns an error unless New has made the client.
func (c *Client) check() error {
	if c == nil || c.engine == nil {
		return errNoClient
	}
	return nil
}

// checkName returns an error unless there is a client, and name can be that of a lock.
func (c *Client) checkName(name string) error { return cmp.Or(c.check(), driver.CheckName(name)) }

// Features returns what the engine that New was given can do, for packages that
// use more of it than locks. What they do with it, the client does not see.
func (c *Client) Features() driver.Features {
	if c.check() != nil {
		return driver.Features{}
	}
	return c.features
}

// Close releases every lease that is still held and waits until all releases
// and the clean-ups of abandoned requests are done, or until ctx's deadline. It
// then gives them up and returns an error that wraps ctx's; what they would have
// cleaned up ends with its TTL. If ctx has ended already, or is cancelled, Close
// still waits for Options.RequestTimeout: the signal that ends a program must
// not keep it from tidying up. Acquiring fails with ErrClosed from now on. Close
// does not close the engine. It may be called again, and then waits again.
func (c *Client) Close(ctx context.Context) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("holdfast: close: %w", err)
	}
	c.deafen()
	for _, l := range c.shut() {
		c.spawn(func(background context.Context) {
			_ = l.Release(background) // told to the Observer; the lease ends with its TTL
		})
	}
	c.finished() // closes idle if nothing is pending
	defer c.abandon()
	err := c.awaitIdle(ctx)
	c.awaitTold(ctx)
	if err != nil {
		return fmt.Errorf("holdfast: close: clean-ups are still running: %w", err)
	}
	return nil
}

// awaitIdle returns nil when nothing is pending, or ctx's error when Close has
// waited long enough.
func (c *Client) awaitIdle(ctx context.Context) error {
	grace := c.opts.RequestTimeout
	if ctx.Err() == nil {
		select {
		case <-c.idle:
		case <-ctx.Done():
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			grace = 0
		}
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.idle:
		return nil
	case <-timer.C:
	}
	select {
	case <-c.idle: // at the same time, perhaps
		return nil
	default:
		return ctx.Err()
	}
}

// shut refuses new leases and returns the present ones. It counts as pending
// until finished is called.
func (c *Client) shut() []*Lease {
	c.started()
	if c.closed.CompareAndSwap(false, true) {
		close(c.closing)
	}
	return c.leases.all()
}

// spawn runs f on a goroutine that Close waits for. The context of f ends
// when Close gives up.
func (c *Client) spawn(f func(background context.Context)) {
	c.started()
	go func() {
		defer c.finished()
		f(c.background)
	}()
}

// started makes Close wait until finished is called.
func (c *Client) started() { c.pending.Add(1) }

// finished takes back one call of started. Close has one pending itself after the
// client is closed, so that somebody finds both here: closed, and nothing pending.
func (c *Client) finished() {
	if c.pending.Add(-1) == 0 && c.closed.Load() {
		c.rest.Do(func() { close(c.idle) })
	}
}

// isClosed reports whether Close was called.
func (c *Client) isClosed() bool { return c.closed.Load() }
