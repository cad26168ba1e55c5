//go:build race

package quorum

// underRace reports whether the race detector is on, which makes a search ten times slower.
const underRace = true
