package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// pin makes all threads of a process run on one core only, until undo: the nth of the cores that
// the process may use.
func pin(pid, n int) (undo func(), err error) {
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &before); err != nil {
		return nil, err
	}
	core, err := nth(&before, n)
	if err != nil {
		return nil, err
	}
	set.Set(core)
	undo = func() { _ = setCores(pid, &before) }
	if err := setCores(pid, &set); err != nil {
		undo()
		return nil, err
	}
	return undo, nil
}

// nth returns the nth core of a set; the first is 0.
func nth(set *unix.CPUSet, n int) (core int, err error) {
	if n >= set.Count() {
		return 0, fmt.Errorf("there are %d cores, and %d are needed", set.Count(), n+1)
	}
	for seen := 0; ; core++ {
		if set.IsSet(core) {
			if seen == n {
				return core, nil
			}
			seen++
		}
	}
}

// setCores sets the cores of each thread of a process. New threads inherit the setting.
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
