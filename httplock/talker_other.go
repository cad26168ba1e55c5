//go:build !unix

package httplock

import "net"

// systemTells returns nil: elsewhere the standard library cannot read without waiting.
func systemTells(net.Conn) (tells func() bool) { return nil }
