//go:build !linux

package sqlitelock

import "time"

// brief sleeps for less than a millisecond if the system can.
func brief(d time.Duration) { time.Sleep(d) }
