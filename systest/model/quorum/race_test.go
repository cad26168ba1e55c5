//go:build race

package quorum

// underRace says that the race detector is on, which makes a search ten times
// slower.
const underRace = true
