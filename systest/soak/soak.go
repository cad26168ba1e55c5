// Package soak sets how much the fault tests do: a little when they run with all other tests, and
// more with -soak.
package soak

import (
	"flag"
	"time"
)

var length = flag.Duration("soak", 0, "about how long all fault tests take together, 30m for example; 0 for the short form")

// whole is the length of a soak that does as much as the report promises.
const whole = 30 * time.Minute

// Long reports whether this is a soak.
func Long() bool { return *length > 0 }

// Count returns how often a test does something: short or, in a soak of half an hour, long.
// Shorter and longer soaks do less and more.
func Count(short, long int) int {
	return max(short, int(float64(long)*float64(*length)/float64(whole)))
}

// For returns how long a test runs: short or, in a soak of half an hour, long. Shorter and longer
// soaks run for less and more.
func For(short, long time.Duration) time.Duration {
	return max(short, time.Duration(float64(long)*float64(*length)/float64(whole)))
}
