package quorumlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// An Engine keeps exclusive locks in a majority of its members. Use New to
// make one.
type Engine struct{ *hidden }

// hidden is engine under a name whose methods go doc does not list, so that go doc shows only what
// programs call.
type hidden = engine

// Admit ends the quarantine of all members at once. The caller must know that no lease is live,
// because the stores are new or the quorum has not been used for MaxTTL. It returns the errors of
// the members that it did not reach.
func (e *Engine) Admit(ctx context.Context) error { return e.hidden.Admit(ctx) }

// Close ends the engine. Requests in progress get a moment to end and clean up; then they fail with
// an unknown outcome.
func (e *Engine) Close() error { return e.hidden.Close() }

// An engine is the implementation of an Engine.
type engine struct {
	members  []driver.Member
	features []driver.Features // of the members
	opts     Options
	quorum   int // the least number of members that is a majority
	ledger   ledger
	proposer driver.Proposer     // differs from other engines' on these members
	janitors []*janitor          // one for each member
	capable  driver.Capabilities // of all members together
	losses   driver.Losses       // the clients' listeners
	counted  lossCount           // members that have reported each loss

	// life ends with Close. It is a field because it is not a caller's context: requests to members
	// continue after their caller has its reply.
	life context.Context
	end  context.CancelFunc

	mu      sync.Mutex // guards closed; nothing starts after that is set
	closed  bool
	running sync.WaitGroup // calls, and what they started
}

var (
	_ driver.Engine     = (*Engine)(nil)
	_ driver.Lister     = (*Engine)(nil)
	_ driver.Breaker    = (*Engine)(nil)
	_ driver.LossTeller = (*Engine)(nil)
)

// Options configure New. Nil is default; a zero field is default.
type Options struct {
	// MaxTTL is the longest TTL of a lease, one second to 30 days. A member that lost its memory
	// grants nothing for this long. All clients of the quorum must use the same value. Default: 5
	// minutes.
	MaxTTL time.Duration

	// Timeout bounds a request to one member. Default: a tenth of the lease's TTL, or of the
	// longest of several, but at least 50 ms and at most 2 s.
	Timeout time.Duration

	// CloseMembers makes Close close the members as well.
	CloseMembers bool
}

const (
	defaultMaxTTL = 5 * time.Minute
	minTimeout    = 50 * time.Millisecond
	maxTimeout    = 2 * time.Second
	longestTTL    = 30 * 24 * time.Hour // as in the driver's contract

	// closeGrace bounds how long Close waits for requests in progress.
	closeGrace = 250 * time.Millisecond
)

// New returns an engine on its members, an odd number of at least 3. The caller closes them after
// the engine, unless Options.CloseMembers is set. New sends nothing. It returns an error that wraps
// driver.ErrInvalid if the number or an option is wrong, or if a member lacks methods that its
// capabilities promise.
func New(members []driver.Member, opts *Options) (*Engine, error) {
	o := *cmp.Or(opts, &Options{})
	o.MaxTTL = cmp.Or(o.MaxTTL, defaultMaxTTL)
	if err := check(members, o); err != nil {
		return nil, err
	}
	e := &engine{
		members: slices.Clone(members), opts: o, quorum: len(members)/2 + 1, proposer: driver.NewProposer(),
		ledger: ledger{entries: map[lockinfo.LeaseID]*entry{}, counters: map[string]proposal{}},
	}
	if err := e.resolve(); err != nil {
		return nil, err
	}
	e.life, e.end = context.WithCancel(context.Background())
	for i := range members {
		e.janitors = append(e.janitors, &janitor{engine: e, member: i})
	}
	return &Engine{e}, nil
}

func check(members []driver.Member, o Options) error {
	n := len(members)
	switch {
	case n < 3: // a majority of two is both, and one member is not a quorum
		return fmt.Errorf("%w: a quorum of %d members: it takes at least 3 to survive the loss of one", driver.ErrInvalid, n)
	case n%2 == 0: // it can split into two halves without a majority
		return fmt.Errorf("%w: a quorum of %d members: an even number survives no more losses than %d and settles less often: "+
			"take one away or add one", driver.ErrInvalid, n, n-1)
	case o.MaxTTL < time.Second || o.MaxTTL > longestTTL:
		return fmt.Errorf("%w MaxTTL %s: it must be 1s to %s", driver.ErrInvalid, o.MaxTTL, longestTTL)
	case o.Timeout < 0:
		return fmt.Errorf("%w Timeout %s: it must not be negative", driver.ErrInvalid, o.Timeout)
	}
	for i, m := range members { // a duplicate would count twice
		if m == nil || slices.ContainsFunc(members[:i], func(other driver.Member) bool { return same(m, other) }) {
			return fmt.Errorf("%w: member %d is nil or in the quorum twice", driver.ErrInvalid, i+1)
		}
	}
	return nil
}

// resolve determines the features of the engine: those that all members have. A member that cannot
// break locks might repair a lease that the others have broken.
func (e *engine) resolve() error {
	e.capable = driver.Capabilities{MaxTTL: e.opts.MaxTTL, Break: true, Losses: true, List: true, Diagnose: true}
	for i, m := range e.members {
		f, err := driver.FeaturesOf(m)
		if err != nil {
			return fmt.Errorf("member %d: %w", i+1, err)
		}
		e.features = append(e.features, f)
		e.capable.Break = e.capable.Break && f.Break
		e.capable.Losses = e.capable.Losses && f.Losses
		e.capable.List = e.capable.List && f.List
	}
	return nil
}

// same reports whether two members are the same. Members that cannot be compared count as
// different.
func same(a, b driver.Member) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// Capabilities implements driver.Engine. A quorum can diagnose. It can break locks, report losses
// and list if all of its members can. It has no history, because no member sees the decisions of
// the others.
func (e *engine) Capabilities() driver.Capabilities { return e.capable }

// Admit implements Engine.Admit.
func (e *engine) Admit(ctx context.Context) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.running.Done()
	h, err := collect(ctx, e, e.timeout(0), func(ctx context.Context, i int) (none struct{}, err error) {
		if err = e.members[i].Admit(ctx); err != nil {
			err = fmt.Errorf("member %d: %w", i+1, err)
		}
		return none, err
	}, nil)
	if err != nil {
		return err
	}
	return errors.Join(h.errs...)
}

// Close implements Engine.Close. Members are closed last, when nothing uses them any more.
func (e *engine) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	e.mu.Unlock()
	grace := time.AfterFunc(closeGrace, e.end)
	e.running.Wait()
	grace.Stop()
	e.end()
	e.counted.close()
	var errs []error
	if first && e.opts.CloseMembers {
		for _, m := range e.members {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}

// enter begins a call, which must end with running.Done. Goroutines of a call are counted in
// running before the call ends, so that Close waits for all of them.
func (e *engine) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fmt.Errorf("the engine was %w", driver.ErrClosed)
	}
	e.running.Add(1)
	return nil
}

// enterIf is enter for features that all members must have.
func (e *engine) enterIf(ctx context.Context, able bool, what string) error {
	if !able {
		return fmt.Errorf("%s is %w: a member cannot", what, driver.ErrUnsupported)
	}
	return e.enter(ctx)
}
