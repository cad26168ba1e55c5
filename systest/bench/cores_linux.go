package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// pin lets all threads of a process run on one core only, until undo.
func pin(pid, core int) (undo func(), err error) {
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &before); err != nil {
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
