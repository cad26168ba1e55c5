//go:build !linux

package net

// A machine exists on Linux only. On other systems there is only the wire.
type machine struct{}
