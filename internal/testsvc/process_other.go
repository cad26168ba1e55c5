//go:build unix && !linux

package testsvc

import "syscall"

// dieWithParent does nothing: only Linux has a parent death signal.
func dieWithParent() *syscall.SysProcAttr { return nil }

// freeze sends SIGSTOP.
func (p *process) freeze() error { return syscall.Kill(p.pid, syscall.SIGSTOP) }
