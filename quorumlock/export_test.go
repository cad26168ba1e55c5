package quorumlock

import "time"

// SetClock moves the engine's clock ahead of the machine's.
func (e *Engine) SetClock(ahead time.Duration) {
	e.ledger.mu.Lock()
	defer e.ledger.mu.Unlock()
	e.ledger.ahead = ahead.Microseconds()
}

// Remembered returns how many lease IDs, counters and withdrawals the engine remembers.
func (e *Engine) Remembered() (leases, counters, withdrawals int) {
	e.ledger.mu.Lock()
	leases, counters = len(e.ledger.entries), len(e.ledger.counters)
	e.ledger.mu.Unlock()
	for _, j := range e.janitors {
		j.mu.Lock()
		withdrawals += len(j.waiting)
		j.mu.Unlock()
	}
	return leases, counters, withdrawals
}
