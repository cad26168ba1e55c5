package sqlitelock

import (
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A clock is the clock of the host. All processes of the host share it, so it is the store's clock.
type clock struct {
	bootID string                        // identifies the boot to which boot's instants belong
	boot   func() (time.Duration, error) // time since the boot, sleep included
	wall   func() time.Time              // for tokens only, never for expiry
}

// An instant is one reading of a clock.
type instant struct {
	boot   int64  // nanoseconds since the boot
	micros uint64 // the wall clock since 1970, for tokens
}

func (c clock) now() (instant, error) {
	boot, err := c.boot()
	if err != nil {
		return instant{}, fmt.Errorf("%w: the boot-time clock cannot be read: %w", driver.ErrUnavailable, err)
	}
	return instant{
		boot:   boot.Nanoseconds(),
		micros: uint64(max(0, c.wall().UnixMicro())),
	}, nil
}

// after returns the instant of the boot clock d later.
func (i instant) after(d time.Duration) int64 { return i.boot + d.Nanoseconds() }

// until returns the time from i to an instant of the boot clock.
func (i instant) until(then int64) time.Duration { return time.Duration(then - i.boot) }

// since returns the time from an instant of the boot clock to i; never negative.
func (i instant) since(then int64) time.Duration { return time.Duration(max(i.boot-then, 0)) }
