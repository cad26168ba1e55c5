package cli

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// durationVar defines a flag whose argument is a length of time. Every flag of
// this program that takes one is made here: seconds, as flock(1) and sleep(1) take
// them, or a duration of Go.
func durationVar(flags *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	durationVarP(flags, p, name, "", value, usage)
}

// durationVarP is durationVar for a flag that has a letter, too.
func durationVarP(flags *pflag.FlagSet, p *time.Duration, name, letter string, value time.Duration, usage string) {
	*p = value
	flags.VarP((*durationValue)(p), name, letter, usage)
}

// A durationValue is the argument of such a flag.
type durationValue time.Duration

// Type is what help calls the argument.
func (d *durationValue) Type() string { return "duration" }

// String is empty for 0, which help then does not call a default.
func (d *durationValue) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Set reads an argument.
func (d *durationValue) Set(s string) error {
	v, err := parseDuration(s)
	*d = durationValue(v)
	return err
}

// longest is the longest time that a flag can say: in seconds, about 31 years.
const longest = 1e9

var (
	errNoDuration = errors.New("want seconds, or a duration such as 1m30s")
	errTooLong    = errors.New("it is too long: more than 1000000000 seconds")
)

// parseDuration reads a length of time: seconds, with a fraction if need be, or
// a duration such as 1m30s.
func parseDuration(s string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		d, err := time.ParseDuration(s)
		switch {
		case err != nil || d < 0:
			return 0, errNoDuration
		case d > longest*time.Second:
			return 0, errTooLong
		}
		return d, nil
	}
	switch {
	case seconds > longest:
		return 0, errTooLong
	case seconds >= 0:
		return time.Duration(seconds * float64(time.Second)), nil
	}
	return 0, errNoDuration // negative, or not a number
}
