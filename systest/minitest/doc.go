// Package minitest tests which parts of holdfast work on miniredis, a Redis in Go for
// tests, so that programs that are tested on it know the worth of their tests.
// docs/testing.md lists them.
package minitest
