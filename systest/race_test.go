//go:build race

package systest

// underRace says that the race detector is on, under which pools forget.
const underRace = true
