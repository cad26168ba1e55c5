//go:build unix

package main

import (
	"fmt"
	"io"
	"time"
)

// An order is what the director sends to a worker: one line of JSON. The first order has the Setup.
// The later ones have a seat and GoOn, in turn.
type order struct {
	Setup    *setup `json:",omitempty"`
	Seat     string `json:",omitempty"`
	Customer string `json:",omitempty"`
	GoOn     bool   `json:",omitempty"` // the card has been charged: write the booking
}

// A setup has the settings of a worker. It is sent through a pipe and not in arguments, which all
// users of the host can read.
type setup struct {
	Worker  string
	Store   string // URL of the locks
	Data    database
	TTL     time.Duration
	Fencing string
}

// An event is what a worker reports to the director: one line of JSON.
type event struct {
	Kind     kind
	Seat     string
	Customer string
	Token    uint64
	Current  uint64        // Refused: the token that the seat has seen
	Waited   time.Duration // Locked
	Text     string        // Failed: why
}

// A kind is a kind of event.
type kind string

const (
	locked   kind = "locked"   // the worker has the seat's lock
	charged  kind = "charged"  // the card is charged, the booking is not written; the worker waits for GoOn
	booked   kind = "booked"   // the booking is written
	refused  kind = "refused"  // the booking was refused: the token is stale
	refunded kind = "refunded" // the charge is undone
	soldOut  kind = "sold out" // another worker has booked the seat; the card was not charged
	done     kind = "done"     // the order is carried out
	failed   kind = "failed"   // the order has failed
)

// A timeline prints what happens, a line for each event.
type timeline struct {
	out   io.Writer
	start time.Time
}

func (t *timeline) say(who, format string, args ...any) {
	fmt.Fprintf(t.out, "%7.3fs  %-8s  %s\n", time.Since(t.start).Seconds(), who, fmt.Sprintf(format, args...))
}

// tell prints an event of a worker.
func (t *timeline) tell(worker string, e event) {
	switch e.Kind {
	case locked:
		waited := ""
		if e.Waited >= 10*time.Millisecond {
			waited = fmt.Sprintf(", after %s", e.Waited.Round(time.Millisecond))
		}
		t.say(worker, "gets the lock of seat %s%s (token %d)", e.Seat, waited, e.Token)
	case charged:
		t.say(worker, "charges %s's card for seat %s", e.Customer, e.Seat)
	case booked:
		t.say(worker, "books seat %s for %s", e.Seat, e.Customer)
	case refused:
		t.say(worker, "IS REFUSED: its token %d is stale, seat %s has seen %d", e.Token, e.Seat, e.Current)
	case refunded:
		t.say(worker, "refunds %s", e.Customer)
	case soldOut:
		t.say(worker, "tells %s that seat %s is sold", e.Customer, e.Seat)
	}
}
