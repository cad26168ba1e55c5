package main

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A door is passed by each holder of a lock. It shows whether two hold the lock at once, without
// a request to a store.
type door struct {
	inside atomic.Int64
	last   atomic.Int64 // number of the worker that was inside last
	passed atomic.Int64 // how often the worker changed, while turns were counted
	mixed  atomic.Int64 // how often two were inside
}

// sharedDoor returns the door in a file, which all processes share. It makes the file if it does
// not exist. The door lasts until the process ends.
func sharedDoor(path string) (*door, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := int(unsafe.Sizeof(door{}))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*door)(unsafe.Pointer(&memory[0])), nil // page-aligned, and not in the Go heap
}

// enter reports whether another worker was inside before, and fails if one still is.
func (d *door) enter(worker int64) (fromOther bool, err error) {
	if d.inside.Add(1) > 1 {
		d.mixed.Add(1)
		err = errOverlap
	}
	return d.last.Swap(worker) != worker, err
}

func (d *door) leave() { d.inside.Add(-1) }
