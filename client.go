package holdfast

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/clock"
	"github.com/holdfast-locks/holdfast/internal/inside"
	"github.com/holdfast-locks/holdfast/internal/places"
	"github.com/holdfast-locks/holdfast/internal/tell"
	"github.com/holdfast-locks/holdfast/internal/turns"
)

// A Client takes locks from one store. Make one with New and share it: all
// its leases are kept alive together, in batches.
type Client struct {
	*hidden
	engine    driver.Engine
	features  driver.Features // the engine's
	opts      Options
	holderErr error      // why opts.Holder is invalid; each acquire returns it
	events    tell.Queue // for the Observer
	logs      tell.Queue // for the log
	boot      clock.Reader
	leases    leaseKeeper
	places    places.Keeper[instant]
	turns     *turns.Turns // nil if the engine has a queue
	cohorts   cohorts
	adoptions sync.Map      // the lease IDs of the calls of Adopt under way
	refuses   atomic.Bool   // Close or Shutdown was called
	closing   chan struct{} // closed when refuses is set, so that all waits end
	deafen    func()        // stops the engine's loss messages

	// background ends with the client. Clean-ups use it.
	background context.Context
	abandon    context.CancelFunc

	// pending counts the goroutines that spawn has started, and the acquires and releases that
	// still run. It is not a sync.WaitGroup, because some begin while Close waits.
	pending atomic.Int64
	closed  atomic.Bool   // only clean-ups begin from now on
	idle    chan struct{} // closed when the client is closed and nothing is pending
	rest    sync.Once     // closes idle
}

// hidden is for packages of this module. go doc does not list its fields.
type hidden = inside.Client

// New returns a client of the store that engine is open on. It sends nothing.
// The client owns the engine, unless Options.SharedEngine is set: the caller must
// Close the client, or Shutdown, which close the engine.
//
// New returns an error that wraps ErrInvalid if an option is out of range, if the engine is
// nil, or if it lacks methods that its capabilities promise, such as a wrapper that embeds
// only driver.Engine: it should embed driver.Forward. The engine then stays open.
func New(engine driver.Engine, opts *Options) (*Client, error) {
	o := opts.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("holdfast: new client: %w", err)
	}
	features, err := driver.FeaturesOf(engine)
	if err != nil {
		return nil, fmt.Errorf("holdfast: new client: %w", err)
	}
	o.Holder.Reason, o.Holder.Labels = "", nil // each acquire has its own
	o.Holder.Once, o.Holder.Caller = false, "" // only a server sets Caller
	background, abandon := context.WithCancel(context.Background())
	c := &Client{
		hidden: &hidden{Engine: features}, engine: engine, features: features, opts: o, holderErr: driver.CheckHolder(o.Holder),
		background: background, abandon: abandon,
		closing: make(chan struct{}), idle: make(chan struct{}),
	}
	c.events.Init(o.Observer, o.Logger)
	c.logs.Init(tell.NewLogger(o.Logger), o.Logger)
	boot, raw := clock.System()
	c.boot.Init(boot, raw, clock.Fresh)
	c.leases.init(c)
	c.places.Init(places.Owner[instant]{
		Queuer: features.Queuer, Router: features.Router, Now: c.now, Spawn: c.spawn, Limit: c.requestContext,
	})
	if features.Queuer == nil {
		c.turns = turns.New()
	}
	c.deafen = c.hear()
	return c, nil
}

// An instant is one moment as the two local clocks show it.
type instant = clock.Instant

// now reads both clocks.
func (c *Client) now() instant {
	mono := time.Now()
	return instant{Mono: mono, Boot: c.boot.At(mono)}
}

// requestContext bounds one request to the store.
func (c *Client) requestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return ask.Limit(ctx, c.opts.RequestTimeout)
}

// errNoClient is the error of a client that New has not made.
var errNoClient = fmt.Errorf("%w client: it is nil, or New has not made it", ErrInvalid)

// check returns an error unless New has made the client.
func (c *Client) check() error {
	if c == nil || c.engine == nil {
		return errNoClient
	}
	return nil
}

// checkName returns an error unless New has made the client, and name is a valid name.
func (c *Client) checkName(name string) error { return cmp.Or(c.check(), driver.CheckName(name)) }

// holderFor returns the holder that the store keeps for an acquire, or an error that wraps
// ErrInvalid; see driver.CheckHolder. New has already checked the client's own holder, so
// without a Reason and Labels there is nothing to check.
func (c *Client) holderFor(o *AcquireOptions) (Holder, error) {
	h := c.opts.Holder
	if o.Reason == "" && len(o.Labels) == 0 {
		return h, c.holderErr
	}
	h.Reason, h.Labels = o.Reason, maps.Clone(o.Labels)
	return h, driver.CheckHolder(h)
}

// holder returns the holder for the lease. To save memory, it points to the client's own holder
// if that is equal.
func (a *acquisition) holder() *Holder {
	h := &a.req.Holder
	if h.Reason == "" && h.Labels == nil && !h.Once && h.Fingerprint == a.client.opts.Holder.Fingerprint {
		return &a.client.opts.Holder
	}
	own := *h
	return &own
}
