//go:build !race

package quorum

const underRace = false
