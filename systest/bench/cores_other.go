//go:build !linux

package main

import "errors"

// pin cannot do on this system what it does on Linux.
func pin(int, int) (undo func(), err error) {
	return nil, errors.New("cores are chosen on Linux only")
}
