package store

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// longest is the longest duration of a flag, in seconds: about 31 years.
const longest = 1e9

var (
	errNoDuration = errors.New("want seconds, or a duration such as 1m30s or 7d")
	errTooLong    = errors.New("it is too long: more than 1000000000 seconds")
)

// ParseDuration reads a length of time: seconds, with a fraction if need be, or a duration
// such as 1m30s, 7d or 1d12h. A day is 24 hours.
func ParseDuration(s string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return lengthOf(seconds)
	}
	var whole time.Duration
	if days, rest, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 64)
		if err != nil {
			return 0, errNoDuration
		}
		if whole, err = lengthOf(float64(n) * 24 * 60 * 60); err != nil {
			return 0, err
		}
		if s = rest; s == "" {
			return whole, nil
		}
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil || d < 0:
		return 0, errNoDuration
	case d > longest*time.Second-whole:
		return 0, errTooLong
	}
	return whole + d, nil
}

// lengthOf returns a number of seconds as a duration.
func lengthOf(seconds float64) (time.Duration, error) {
	switch {
	case seconds > longest:
		return 0, errTooLong
	case seconds >= 0:
		return time.Duration(seconds * float64(time.Second)), nil
	}
	return 0, errNoDuration // negative, or not a number
}
