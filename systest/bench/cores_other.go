//go:build !linux

package main

import "errors"

var errCores = errors.New("cores are chosen on Linux only")

func pin(int, int) error { return errCores }
func unpin(int) error    { return errCores }
