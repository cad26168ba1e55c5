//go:build race

package sqlitelock

// rounds is how often some tests try each case. The race detector makes SQLite ten times slower;
// make soak runs the tests without it.
const rounds = 4
