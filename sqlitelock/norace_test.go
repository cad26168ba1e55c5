//go:build !race

package sqlitelock

// rounds: see race_test.go.
const rounds = 20
