//go:build !unix

package httplock

import "net"

// systemTells: a read that does not wait is beyond the standard library elsewhere.
func systemTells(net.Conn) (tells func() bool) { return nil }
