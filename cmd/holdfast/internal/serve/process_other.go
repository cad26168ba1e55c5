//go:build !unix

package serve

// writeUsage writes nothing on this system.
func writeUsage(*page) {}
