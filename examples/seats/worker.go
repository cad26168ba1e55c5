//go:build unix

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/stores"
)

// price of every seat.
const price = 4000

// A worker sells seats, one after the other, as the director orders.
type worker struct {
	setup
	client *holdfast.Client
	db     *sql.DB
	orders *json.Decoder
	events *json.Encoder
}

// runWorker runs a worker until the director closes the pipe.
func runWorker(ctx context.Context, in io.Reader, out io.Writer) error {
	w := &worker{orders: json.NewDecoder(in), events: json.NewEncoder(out)}
	var first order
	if err := w.orders.Decode(&first); err != nil {
		return err
	}
	if first.Setup == nil {
		return errors.New("the first order has no setup: this command is for the program itself")
	}
	w.setup = *first.Setup
	var err error
	if w.client, err = stores.Dial(ctx, w.Store, &holdfast.Options{TTL: w.TTL, Holder: holdfast.Holder{Label: w.Worker}}); err != nil {
		return err
	}
	defer w.client.Close()
	if w.db, err = w.Data.open(); err != nil {
		return err
	}
	defer w.db.Close()
	for {
		var o order
		if err := w.orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		last := event{Kind: done, Seat: o.Seat}
		if err := w.sell(ctx, o.Seat, o.Customer); err != nil {
			last = event{Kind: failed, Seat: o.Seat, Text: err.Error()}
		}
		if err := w.events.Encode(last); err != nil {
			return err
		}
	}
}

// sell takes the lock of a seat, charges the card if the seat is free, and
// books it.
//
// The statements run under ctx and not under the lease's context, which would end them with the
// lease. Here the worker is stopped between its last check of a context and its write: no check can
// prevent that.
func (w *worker) sell(ctx context.Context, seat, customer string) error {
	began := time.Now()
	lease, err := w.client.Acquire(ctx, "seats/"+seat, nil)
	if err != nil {
		return err
	}
	defer lease.Release(ctx)
	tell := func(e event) error {
		e.Seat, e.Customer, e.Token = seat, customer, lease.Token()
		return w.events.Encode(e)
	}
	if err := tell(event{Kind: locked, Waited: time.Since(began)}); err != nil {
		return err
	}
	free := false
	err = w.transact(ctx, seat, lease, w.Fencing == fencingOn, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT count(*) = 0 FROM bookings WHERE seat = $1`, seat).Scan(&free)
	})
	if err != nil {
		return w.giveUp(ctx, lease, err, tell)
	}
	if !free {
		return tell(event{Kind: soldOut})
	}
	if err := w.charge(ctx, lease, seat, customer); err != nil {
		return err
	}
	if err := w.waitForGoOn(tell); err != nil {
		return err
	}
	err = w.transact(ctx, seat, lease, w.Fencing != fencingOff, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO bookings (seat, customer, worker) VALUES ($1, $2, $3)`, seat, customer, w.Worker)
		return err
	})
	if err != nil {
		return w.giveUp(ctx, lease, err, tell)
	}
	return tell(event{Kind: booked})
}

// transact runs do in a transaction. If it is fenced, its first statement records the lease's token
// as the seat's, and refuses a stale token.
func (w *worker) transact(ctx context.Context, seat string, lease *holdfast.Lease, fenced bool, do func(*sql.Tx) error) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if fenced {
		if err := w.Data.dialect().Advance(ctx, tx, "seat/"+seat, lease); err != nil {
			return err
		}
	}
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// charge simulates a request to a card provider: it is not part of the transaction of the booking,
// and is done when its reply arrives. The lease ID names the charge, so that it can be repeated and
// refunded.
func (w *worker) charge(ctx context.Context, lease *holdfast.Lease, seat, customer string) error {
	_, err := w.db.ExecContext(ctx, `INSERT INTO charges (id, seat, customer, cents) VALUES ($1, $2, $3, $4)`,
		string(lease.ID()), seat, customer, price)
	return err
}

// waitForGoOn waits between the charge and the booking. In practice this time is too short to
// notice; here it lasts until the director continues the worker.
func (w *worker) waitForGoOn(tell func(event) error) error {
	if err := tell(event{Kind: charged}); err != nil {
		return err
	}
	var o order
	if err := w.orders.Decode(&o); err != nil {
		return err
	}
	if !o.GoOn {
		return fmt.Errorf("want the order to go on, got %+v", o)
	}
	return nil
}

// giveUp refunds the charge, if there is one, if err is a refusal of the guard. It returns any
// other error.
func (w *worker) giveUp(ctx context.Context, lease *holdfast.Lease, err error, tell func(event) error) error {
	var stale *fence.StaleError
	if !errors.As(err, &stale) {
		return err
	}
	if err := tell(event{Kind: refused, Current: stale.Current}); err != nil {
		return err
	}
	result, err := w.db.ExecContext(ctx, `UPDATE charges SET refunded = 1 WHERE id = $1`, string(lease.ID()))
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return err // refused before it charged anything
	}
	return tell(event{Kind: refunded})
}
