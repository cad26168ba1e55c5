package fence

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/observe"
)

// A Gate keeps the marks of resources that live in this process, such as a
// file that only this process writes, or a device. Its marks are gone when the
// process ends: it must not guard what outlives the process.
type Gate struct {
	opts    GateOptions
	reports *Reporter

	mu    sync.Mutex // guards marks; not held while a write runs
	marks map[string]*mark
}

// GateOptions are the options of NewGate. Nil means the defaults.
type GateOptions struct {
	// MaxResources is the maximum number of marks. A further resource is
	// refused with ErrFull, because forgetting a mark would let stale holders
	// in. The default is 1,000,000, about 200 MB.
	MaxResources int

	// Observer receives every decision; see Reporter.
	Observer observe.Observer
}

// defaultMaxResources is the default of GateOptions.MaxResources.
const defaultMaxResources = 1_000_000

// A mark is the last claim that a resource accepted.
type mark struct {
	// turn has a value while a goroutine decides or writes; it guards the rest.
	// It is a channel and not a mutex so that a wait can be given up.
	turn      chan struct{}
	last      claim
	forgotten bool // the gate has dropped this mark: look it up again
}

// NewGate makes a gate that has seen no token. A negative MaxResources is
// holdfast.ErrInvalid.
func NewGate(opts *GateOptions) (*Gate, error) {
	g := &Gate{opts: *cmp.Or(opts, &GateOptions{}), marks: map[string]*mark{}}
	if g.opts.MaxResources < 0 {
		return nil, fmt.Errorf("fence: %w MaxResources %d: want none, or a positive number", driver.ErrInvalid, g.opts.MaxResources)
	}
	g.opts.MaxResources = cmp.Or(g.opts.MaxResources, defaultMaxResources)
	g.reports = NewReporter(g.opts.Observer)
	return g, nil
}

// Advance makes the resource store the claim. Call it before anything is read.
// It waits for a Write that is running. On success no holder with a smaller
// token is accepted any more. It returns a *StaleError if a later holder came
// first, and ErrFull if the resource is one too many.
func (g *Gate) Advance(resource string, c Claim) error {
	return g.Write(resource, c, func() error { return nil })
}

// Check reports whether the holder may still write, by the same rule as Advance. The answer may
// already be out of date: another holder's Advance may come before the write. Use Write where you
// can pass the write as a function.
func (g *Gate) Check(resource string, c Claim) error {
	return g.Advance(resource, c)
}

// Write checks the claim and calls write if it is accepted, while every other
// call for the resource waits: what write does is done before the next holder
// advances. It returns write's error unchanged. write must not call methods of
// the gate for the same resource, which would wait for ever.
func (g *Gate) Write(resource string, c Claim, write func() error) error {
	return g.write(context.Background(), resource, c, write)
}

// write does as Write, but gives up the wait for its turn when ctx ends.
func (g *Gate) write(ctx context.Context, resource string, c Claim, write func() error) error {
	if err := CheckClaim(resource, c); err != nil {
		return err
	}
	v := claim{c.Token(), c.ID()}
	m, err := g.take(ctx, resource)
	if err != nil {
		return err
	}
	defer func() { <-m.turn }()
	err = m.accept(resource, v)
	g.reports.Report(ctx, resource, v, err)
	if err != nil {
		return err
	}
	return write()
}

// Forget makes the gate forget a resource that is gone for good. If a resource
// of that name is created again, even an old holder may write to it. Forget
// waits for a Write that is running.
func (g *Gate) Forget(resource string) {
	g.mu.Lock()
	m := g.marks[resource]
	g.mu.Unlock()
	if m == nil {
		return
	}
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !m.forgotten {
		m.forgotten = true
		delete(g.marks, resource)
	}
}

// take waits for the turn at the resource's mark, and makes the mark if there is
// none. The caller ends its turn by receiving from turn.
func (g *Gate) take(ctx context.Context, resource string) (*mark, error) {
	for {
		m, err := g.mark(resource)
		if err != nil {
			return nil, err
		}
		select {
		case m.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("fence: resource %q: wait for another holder's write: %w", resource, context.Cause(ctx))
		}
		if !m.forgotten {
			return m, nil
		}
		<-m.turn
	}
}

func (g *Gate) mark(resource string) (*mark, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.marks[resource]; m != nil {
		return m, nil
	}
	if len(g.marks) >= g.opts.MaxResources {
		return nil, fmt.Errorf("fence: resource %q: %w: the gate keeps %d marks: raise MaxResources, or Forget resources that are gone", resource, ErrFull, len(g.marks))
	}
	m := &mark{turn: make(chan struct{}, 1)}
	g.marks[resource] = m
	return m, nil
}

// accept makes c the mark if it passes.
func (m *mark) accept(resource string, c claim) error {
	if !c.passes(m.last) {
		return &StaleError{Resource: resource, Token: c.token, Current: m.last.token}
	}
	m.last = c
	return nil
}
