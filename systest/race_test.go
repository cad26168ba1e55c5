//go:build race

package systest

// underRace reports whether the race detector is on. Under it a sync.Pool drops some items.
const underRace = true
