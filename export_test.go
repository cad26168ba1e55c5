package holdfast

import "time"

// SetBootClock replaces the boot-time clock of a client without leases.
func SetBootClock(c *Client, clock func() time.Duration) {
	c.boot.init(clock, 0)
	c.leases.watchSuspensions()
}

// RecentTurns returns how many names the client remembers for fair turns.
func RecentTurns(c *Client) (n int) {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	for _, t := range c.turns.recent {
		if t.name != "" {
			n++
		}
	}
	return n
}

// SetEveryClock replaces the clock by which a replica that calls Every tells the time.
func SetEveryClock(o *EveryOptions, clock func() time.Time) { o.clock = clock }
