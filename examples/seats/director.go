//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A director gives orders to the workers, and stops one at the worst moment.
type director struct {
	workers  []*process
	ttl      time.Duration
	timeline *timeline
	refused  int // bookings
}

// customers come in this order, repeatedly.
var customers = [...]string{"Ada", "Alan", "Grace", "Edsger", "Barbara", "Leslie", "Radia", "Tony"}

// round tries to sell one seat to two customers.
func (d *director) round(ctx context.Context, n int) error {
	seat := fmt.Sprintf("%d%c", n/6+1, 'A'+n%6)
	first, second := d.workers[n%len(d.workers)], d.workers[(n+1)%len(d.workers)]
	d.timeline.say("director", "-- seat %s --", seat)

	if err := first.send(order{Seat: seat, Customer: customers[2*n%len(customers)]}); err != nil {
		return err
	}
	if _, err := d.follow(ctx, first, charged); err != nil {
		return err
	}
	if err := first.stop(); err != nil {
		return err
	}
	d.timeline.say("director", "stops %s (SIGSTOP): it has charged the card, and not yet written the booking", first.name)

	if err := second.send(order{Seat: seat, Customer: customers[(2*n+1)%len(customers)]}); err != nil {
		return err
	}
	if err := d.awaitLock(ctx, first, second); err != nil {
		return err
	}
	if _, err := d.follow(ctx, second, charged); err != nil {
		return err
	}
	// The stopped worker wakes after the second is done or, in every other round, while the second
	// is between its read and its write.
	last := []*process{second, first}
	if n%2 == 1 {
		last = []*process{first, second}
	}
	sales := 0
	for _, p := range last {
		sold, err := d.finish(ctx, p, p == first)
		if err != nil {
			return err
		}
		if sold {
			sales++
		}
	}
	if sales > 1 {
		d.timeline.say("director", "SEAT %s IS SOLD TWICE", seat)
	}
	return nil
}

// finish lets a worker write its booking, and reports whether it has.
func (d *director) finish(ctx context.Context, p *process, stopped bool) (sold bool, err error) {
	if stopped {
		d.timeline.say("director", "wakes %s (SIGCONT): its lease has expired, and it does not know", p.name)
	}
	// The order is sent first, so that a stopped worker continues at once when it wakes.
	if err := p.send(order{GoOn: true}); err != nil {
		return false, err
	}
	if stopped {
		if err := p.wake(); err != nil {
			return false, err
		}
	}
	return d.follow(ctx, p, done)
}

// awaitLock returns when second has the lock that the stopped process had.
//
// If the locks are in a file, the stop can hit the keep-alive while it writes to the file, which
// then stays locked for all processes. So if the lock comes late, the stopped process runs until
// second has the lock. It does no more than it would while stopped: its lease has expired, and it
// waits for an order.
func (d *director) awaitLock(ctx context.Context, stopped, second *process) error {
	e, err := second.next(ctx, d.ttl+2*time.Second)
	if errors.Is(err, errLate) {
		if err := stopped.wake(); err != nil {
			return err
		}
		if e, err = second.next(ctx, patience); err == nil {
			err = stopped.stop()
		}
	}
	if err != nil {
		return err
	}
	if e.Kind != locked {
		return fmt.Errorf("%s: %s, want the lock first", second.name, e.Kind)
	}
	d.timeline.tell(second.name, e)
	return nil
}

// follow prints what a worker does until an event of the kind last, and
// reports whether it has booked the seat.
func (d *director) follow(ctx context.Context, p *process, last kind) (sold bool, err error) {
	for {
		e, err := p.next(ctx, patience)
		if err != nil {
			return sold, err
		}
		d.timeline.tell(p.name, e)
		switch e.Kind {
		case booked:
			sold = true
		case refused:
			d.refused++
		}
		if e.Kind == last {
			return sold, nil
		}
		if e.Kind == done {
			return sold, fmt.Errorf("%s is done with seat %s without %q", p.name, e.Seat, last)
		}
	}
}
