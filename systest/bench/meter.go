package main

import (
	"runtime"
	"syscall"
	"time"
)

// A usage is what something took: of the server's processor, of ours, and of
// our memory.
type usage struct {
	wall, server, client time.Duration
	allocs, bytes        uint64
}

// A meter has begun to measure.
type meter struct {
	store store
	begun time.Time
	usage
}

// measure begins to measure a store and this process.
func measure(s store) (*meter, error) {
	runtime.GC() // what others have left is not ours
	m := &meter{store: s}
	var err error
	if m.usage, err = m.now(); err != nil {
		return nil, err
	}
	m.begun = time.Now()
	return m, nil
}

// taken returns what was used since measure.
func (m *meter) taken() (usage, error) {
	wall := time.Since(m.begun)
	u, err := m.now()
	return usage{
		wall: wall, server: u.server - m.server, client: u.client - m.client,
		allocs: u.allocs - m.allocs, bytes: u.bytes - m.bytes,
	}, err
}

func (m *meter) now() (u usage, err error) {
	if u.client, err = ownCPU(); err != nil {
		return u, err
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	u.allocs, u.bytes = mem.Mallocs, mem.TotalAlloc
	u.server, err = m.store.cpu()
	return u, err
}

// ownCPU returns what this process has used of the processors.
func ownCPU() (time.Duration, error) {
	var r syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), err
}

// heap returns what is in use after a collection.
func heap() uint64 {
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	return mem.HeapAlloc + mem.StackInuse
}

// per returns a duration in microseconds for each of n.
func per(d time.Duration, n int64) float64 {
	return float64(d) / float64(time.Microsecond) / float64(n)
}
