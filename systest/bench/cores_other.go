//go:build !linux

package main

import "errors"

// pin returns an error: this system is not supported.
func pin(int, int) (undo func(), err error) {
	return nil, errors.New("cores are chosen on Linux only")
}
