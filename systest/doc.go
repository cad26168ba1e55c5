// Package systest holds the fault tests: the real client on a real Redis,
// behind a network that delays, loses, holds and cuts (internal/faultproxy),
// and with processes that are stopped. It contains tests only and is never
// released.
//
// Each file is one theme. Where a test shows that something never happens, a
// second one shows that the same check would see it happen.
package systest
