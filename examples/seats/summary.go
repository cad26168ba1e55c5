//go:build unix

package main

import (
	"context"
	"database/sql"
	"fmt"
)

// A summary is the result, as read from the database.
type summary struct {
	Fencing    string `json:"fencing"`
	Rounds     int    `json:"rounds"`
	Sold       int    `json:"sold"`        // seats
	DoubleSold int    `json:"double_sold"` // seats with more than one booking
	Refused    int    `json:"refused"`     // bookings that the guard refused
	Refunded   int    `json:"refunded"`    // charges
	Unsettled  int    `json:"unsettled"`   // charges without a booking that were not refunded
}

// count fills in the numbers that are in the database.
func (s *summary) count(ctx context.Context, db *sql.DB) error {
	for query, n := range map[string]*int{
		`SELECT count(DISTINCT seat) FROM bookings`:                                                   &s.Sold,
		`SELECT count(*) FROM (SELECT seat FROM bookings GROUP BY seat HAVING count(*) > 1) AS twice`: &s.DoubleSold,
		`SELECT count(*) FROM charges WHERE refunded = 1`:                                             &s.Refunded,
		`SELECT count(*) FROM charges AS c WHERE refunded = 0 AND NOT EXISTS
			(SELECT 1 FROM bookings AS b WHERE b.seat = c.seat AND b.customer = c.customer)`: &s.Unsettled,
	} {
		if err := db.QueryRowContext(ctx, query).Scan(n); err != nil {
			return fmt.Errorf("count: %w", err)
		}
	}
	return nil
}

func (s summary) String() string {
	return fmt.Sprintf("%d seats sold, %d of them twice; %d bookings refused, %d charges refunded", s.Sold, s.DoubleSold, s.Refused, s.Refunded)
}

// problem describes how the result differs from the expected one; "" if it does not.
func (s summary) problem() string {
	switch {
	case s.Fencing != fencingOn && s.DoubleSold == 0:
		return "no seat was sold twice: this run shows nothing"
	case s.Fencing != fencingOn:
		return ""
	case s.DoubleSold > 0:
		return fmt.Sprintf("%d seats were sold twice in spite of fencing", s.DoubleSold)
	case s.Sold != s.Rounds:
		return fmt.Sprintf("%d seats were sold, want %d", s.Sold, s.Rounds)
	case s.Refused < s.Rounds:
		return fmt.Sprintf("%d bookings were refused, want %d or more", s.Refused, s.Rounds)
	case s.Refunded != s.Refused:
		return fmt.Sprintf("%d bookings were refused and %d charges refunded", s.Refused, s.Refunded)
	case s.Unsettled > 0:
		return fmt.Sprintf("%d customers paid and have no seat", s.Unsettled)
	}
	return ""
}
