package holdfast

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast/internal/ask"
)

// Close ends the client at once, and its engine unless Options.SharedEngine is set. Calls
// that wait for a lock, loops over a Feed and Every return ErrClosed, and so does every
// acquire from now on. The context of every lease that is still held ends, and the lease is
// released, while the work under it may still run: see Shutdown for the other way.
//
// Close returns when these releases, the clean-ups of abandoned requests and the calls of
// the Observer are done, after Options.RequestTimeout at the latest. It then gives up what
// is left, with an error that wraps context.DeadlineExceeded if that are releases or
// clean-ups: their leases expire with their TTL. It returns the error of the engine's own
// Close, too. It may be called again, from anywhere but the Observer.
func (c *Client) Close() error {
	if err := c.check(); err != nil {
		return fmt.Errorf("holdfast: close: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.opts.RequestTimeout)
	defer cancel()
	for _, l := range c.shut() {
		l.noteClose()
		c.spawn(func(background context.Context) {
			_ = l.Release(background) // the Observer gets its error; the lease expires with its TTL
		})
	}
	c.finished() // closes idle if nothing is pending
	err := await(ctx, c.idle)
	if err != nil {
		err = fmt.Errorf("holdfast: close: clean-ups are still running: %w", err)
	}
	return errors.Join(err, c.end(ctx))
}

// Shutdown ends the client without taking a lease from the work under it. Calls that wait and
// new acquires return ErrClosed from now on, as after Close. Leases that are held are kept
// alive until their holders release them or they are lost; Every releases its schedule
// between two runs. When no lease is held, and all releases and clean-ups are done, Shutdown
// closes the client and its engine, as Close does, and returns nil.
//
// If ctx ends first, Shutdown returns an error that wraps ctx's. Leases that are still
// held are then kept alive, and the engine is open: call Close to end them, or Shutdown
// again. Work that goes on until its context ends, as it does under Lead, must be ended by
// its own context. Shutdown must not be called by such work, which it would wait for.
func (c *Client) Shutdown(ctx context.Context) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("holdfast: shut down: %w", err)
	}
	c.refuse()
	if err := await(ctx, c.leases.vacated()); err != nil {
		return fmt.Errorf("holdfast: shut down: leases are still held (%d): %w", len(c.leases.all()), err)
	}
	c.shut() // an acquire that is under way releases its lease itself
	c.finished()
	if err := await(ctx, c.idle); err != nil {
		return fmt.Errorf("holdfast: shut down: clean-ups are still running: %w", err)
	}
	return c.end(ctx)
}

// refuse makes new acquires fail, and ends those that wait.
func (c *Client) refuse() {
	if c.refuses.CompareAndSwap(false, true) {
		close(c.closing)
	}
}

// shut sets closed, so that idle is closed as soon as nothing is pending. It returns the leases
// that are held. It counts as pending itself, until the caller calls finished.
func (c *Client) shut() []*Lease {
	c.started()
	c.deafen()
	c.refuse()
	c.closed.Store(true)
	return c.leases.all()
}

// end waits until the Observer has all events, for as long as ctx allows. It then ends the
// clean-ups that still run, and closes the engine unless it is shared.
func (c *Client) end(ctx context.Context) error {
	c.awaitDelivery(ctx)
	c.abandon()
	if c.opts.SharedEngine {
		return nil
	}
	if err := c.engine.Close(); err != nil {
		return fmt.Errorf("holdfast: close: %w", err)
	}
	return nil
}

// await waits until done is closed. It returns the error of ctx if ctx ends first.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done: // done wins if both have ended
		return nil
	default:
		return ask.ContextError(ctx)
	}
}

// spawn runs f on a goroutine that Close and Shutdown wait for. The context of f ends
// when the client does.
func (c *Client) spawn(f func(background context.Context)) {
	c.started()
	go func() {
		defer c.finished()
		f(c.background)
	}()
}

// started makes Close and Shutdown wait for a call of finished.
func (c *Client) started() { c.pending.Add(1) }

// finished undoes one call of started. shut is itself pending when it sets closed, so the last
// call of finished comes after that, and sees closed.
func (c *Client) finished() {
	if c.pending.Add(-1) == 0 && c.closed.Load() {
		c.rest.Do(func() { close(c.idle) })
	}
}

// isClosed reports whether Close or Shutdown was called.
func (c *Client) isClosed() bool { return c.refuses.Load() }
