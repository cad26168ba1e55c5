package store

import (
	"errors"
	"testing"
	"time"
)

// TestParseDuration checks the values that every flag with a length of time accepts.
func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"0":          0,
		"-0":         0,
		"0s":         0,
		"3":          3 * time.Second,
		"+3":         3 * time.Second,
		"007":        7 * time.Second,
		"0.25":       250 * time.Millisecond,
		".5":         500 * time.Millisecond,
		"1e-3":       time.Millisecond,
		"1e-400":     0,
		"1000000000": 1e9 * time.Second,
		"1m30s":      90 * time.Second,
		"1.5h":       90 * time.Minute,
		"20ms":       20 * time.Millisecond,
		"277777h":    277777 * time.Hour,
		"2d":         48 * time.Hour,
		"1d12h":      36 * time.Hour,
		"0d":         0,
	} {
		if got, err := ParseDuration(s); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", s, got, err, want)
		}
	}
	for s, want := range map[string]error{
		"": errNoDuration, " ": errNoDuration, "soon": errNoDuration, "s": errNoDuration, "3 s": errNoDuration, "3S": errNoDuration,
		"d": errNoDuration, "1.5d": errNoDuration, "-1d": errNoDuration, "1d 2h": errNoDuration, "1d2": errNoDuration, "1h2d": errNoDuration, "1,5": errNoDuration, "0x": errNoDuration, "３": errNoDuration,
		"-1": errNoDuration, "-1s": errNoDuration, "-0.001": errNoDuration, "-Inf": errNoDuration, "-1e400": errNoDuration,
		"NaN": errNoDuration, "nan": errNoDuration,
		"Inf": errTooLong, "infinity": errTooLong, "1e300": errTooLong, "1e400": errTooLong, "1000000001": errTooLong, "277778h": errTooLong, "11575d": errTooLong, "11574d7h": errTooLong,
		"9999999h": errNoDuration, // more than a time.Duration can hold
	} {
		if got, err := ParseDuration(s); !errors.Is(err, want) || got != 0 {
			t.Errorf("%q: %s, %v; want %v", s, got, err, want)
		}
	}
}
