//go:build !unix

package redislock

import "net"

// A peeker does nothing: see peek_unix.go.
type peeker struct{}

func newPeeker(net.Conn) *peeker { return nil }

func (*peeker) isQuiet() bool { return true }
