//go:build race

package sqlitelock

// rounds is how often each case of a file is tried: the race detector makes
// SQLite ten times slower, and make soak runs them without it.
const rounds = 4
