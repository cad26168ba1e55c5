package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// wardenOf returns the process ID of a holdfast's warden, or 0 if holdfast has ended.
func wardenOf(t *testing.T, pid int) int {
	t.Helper()
	warden := 0
	eventually(t, "there is a warden", func() bool {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // of each thread
		for _, list := range lists {
			data, _ := os.ReadFile(list)
			for _, child := range strings.Fields(string(data)) {
				if line, _ := os.ReadFile("/proc/" + child + "/cmdline"); bytes.Contains(line, []byte("\x00__warden\x00")) {
					warden, _ = strconv.Atoi(child)
				}
			}
		}
		_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		return warden != 0 || err != nil
	})
	return warden
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("there is no process to kill: %d", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		t.Error(err)
	}
}

// processesOf returns the IDs of live processes that have word in their arguments.
func processesOf(t *testing.T, word string) (pids []int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		// The file is empty if the process waits to be reaped.
		if line, _ := os.ReadFile(file); bytes.Contains(line, []byte(word)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}
