// Package minitest has the tests of what of holdfast holds on miniredis, a Redis in Go
// for tests: programs that are tested on it are to know what their tests are worth.
// docs/testing.md says it in words.
package minitest
