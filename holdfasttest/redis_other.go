//go:build !unix

package holdfasttest

import "testing"

// Redis fails the test: there is no redis-server for this system. On other systems it starts a
// server of the test's own and returns its URL.
func Redis(t testing.TB) (url string) {
	t.Helper()
	t.Fatal("holdfasttest: there is no redis-server for this system: run this test on Linux, macOS or in a container")
	return ""
}
