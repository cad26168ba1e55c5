//go:build !race

package systest

const underRace = false
