//go:build unix && !linux

package testsvc

import "syscall"

// dieWithParent does nothing: only Linux has a parent death signal.
func dieWithParent() *syscall.SysProcAttr { return nil }

// Freeze sends a process SIGSTOP.
func Freeze(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }
