//go:build !linux

package net

// A machine is there on Linux only; elsewhere there is only the wire.
type machine struct{}
