package holdfast

import "time"

// SetBootClock replaces the boot-time clock of a client without leases.
func SetBootClock(c *Client, clock func() time.Duration) {
	c.bootClock = clock
	c.keeper.watchSuspensions()
}
