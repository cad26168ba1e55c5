package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// pin lets all threads of a process run on one core only.
func pin(pid, core int) error {
	var set unix.CPUSet
	set.Set(core)
	return setCores(pid, &set)
}

// unpin lets a process run wherever this one could when it began.
func unpin(pid int) error {
	var set unix.CPUSet
	for core := range runtime.NumCPU() {
		set.Set(core)
	}
	return setCores(pid, &set)
}

// setCores does it thread by thread; new threads inherit it from old ones.
func setCores(pid int, set *unix.CPUSet) error {
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, set); err != nil && err != unix.ESRCH {
			return fmt.Errorf("cores of thread %d: %w", tid, err)
		}
	}
	return nil
}
