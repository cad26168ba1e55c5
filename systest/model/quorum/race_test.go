//go:build race

package model

// underRace says that the race detector is on, which makes a search ten times
// slower.
const underRace = true
