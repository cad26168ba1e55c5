package store

import (
	"errors"
	"strconv"
	"time"
)

// longest is the longest duration of a flag, in seconds: about 31 years.
const longest = 1e9

var (
	errNoDuration = errors.New("want seconds, or a duration such as 1m30s")
	errTooLong    = errors.New("it is too long: more than 1000000000 seconds")
)

// Parse reads a length of time: seconds, with a fraction if need be, or
// a duration such as 1m30s.
func ParseDuration(s string) (time.Duration, error) {
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
