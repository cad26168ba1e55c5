package main

import (
	"errors"
	"runtime"
	"syscall"
	"time"
)

// A usage is the cost of operations: CPU of the server and of this process, and memory of this
// process.
type usage struct {
	wall, server, client time.Duration
	scripts              scripts
	allocs, bytes        uint64
}

// A meter is a running measurement.
type meter struct {
	store store
	begun time.Time
	usage
}

// measure starts to measure a store and this process.
func measure(s store) (*meter, error) {
	runtime.GC() // garbage of earlier trials must not count
	m := &meter{store: s}
	var err, err2 error
	m.scripts, err = s.scripts()
	m.allocated()
	m.server, err2 = s.cpu()
	if err = errors.Join(err, err2); err == nil {
		m.client, err = ownCPU()
	}
	m.begun = time.Now()
	return m, err
}

// taken returns the usage since measure. It reads the meters in the opposite order, so that its
// own reads are not measured.
func (m *meter) taken() (u usage, err error) {
	u.wall = time.Since(m.begun)
	client, err := ownCPU()
	if err != nil {
		return u, err
	}
	server, err := m.store.cpu()
	if err != nil {
		return u, err
	}
	u.allocated()
	s, err := m.store.scripts()
	u.client, u.server = client-m.client, server-m.server
	u.allocs, u.bytes = u.allocs-m.allocs, u.bytes-m.bytes
	u.scripts = scripts{calls: s.calls - m.scripts.calls, took: s.took - m.scripts.took, longest: s.longest}
	return u, err
}

// cost measures operations of a trial, which do counts, and returns the cost of one.
func (t *trial) cost(do func() (n int64, err error)) (sample, error) {
	m, err := measure(t.store)
	if err != nil {
		return nil, err
	}
	n, err := do()
	if err != nil {
		return nil, err
	}
	u, err := m.taken()
	if err != nil {
		return nil, err
	}
	return u.perOperation(n)
}

// allocated records the allocations of this process until now.
func (u *usage) allocated() {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	u.allocs, u.bytes = mem.Mallocs, mem.TotalAlloc
}

// perOperation returns the usage per operation, for n operations.
func (u usage) perOperation(n int64) (sample, error) {
	if n == 0 {
		return nil, errIdle
	}
	return sample{
		"rate": float64(n) / u.wall.Seconds(), "server": per(u.server, n), "client": per(u.client, n),
		"script": per(u.scripts.took, n), "scripts": float64(u.scripts.calls) / float64(n),
		"allocs": float64(u.allocs) / float64(n), "bytes": float64(u.bytes) / float64(n),
	}, nil
}

// ownCPU returns the CPU time of this process.
func ownCPU() (time.Duration, error) {
	var r syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), err
}

// heap returns the memory in use after a garbage collection.
func heap() uint64 {
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	return mem.HeapAlloc + mem.StackInuse
}

// per returns the nth part of a duration in microseconds.
func per(d time.Duration, n int64) float64 {
	return float64(d) / float64(time.Microsecond) / float64(n)
}
