package limit

import "time"

// A ledger counts what ends by itself: leases, or bytes in the store.
type ledger struct {
	all    map[string]entry
	bytes  int64     // of all
	sooner time.Time // no entry ends before
}

// An entry is what a ledger has under one key.
type entry struct {
	bytes int64
	ends  time.Time
}

// put replaces the entry of a key.
func (g *ledger) put(key string, e entry) {
	g.drop(key)
	if g.all == nil {
		g.all = map[string]entry{}
	}
	if len(g.all) == 0 || e.ends.Before(g.sooner) {
		g.sooner = e.ends
	}
	g.all[key] = e
	g.bytes += e.bytes
}

func (g *ledger) drop(key string) {
	g.bytes -= g.all[key].bytes
	delete(g.all, key)
}

// sweep drops the entries that have ended. It does nothing before the first can have ended.
func (g *ledger) sweep() {
	now := time.Now()
	if len(g.all) == 0 || now.Before(g.sooner) {
		return
	}
	first := true
	for key, e := range g.all {
		switch {
		case !now.Before(e.ends):
			g.drop(key)
		case first || e.ends.Before(g.sooner):
			g.sooner, first = e.ends, false
		}
	}
}

// again returns when a caller with a full ledger should retry.
func (g *ledger) again() time.Duration {
	return max(time.Second, min(time.Minute, time.Until(g.sooner)))
}
