// Package minitest tests which parts of holdfast work on miniredis, a Redis in Go for tests.
// docs/testing.md lists these parts, for programs that are tested on miniredis.
package minitest
