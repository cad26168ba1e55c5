package main

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNthCore(t *testing.T) {
	var set unix.CPUSet
	set.Set(2)
	set.Set(5)
	for n, want := range []int{2, 5} {
		if got, err := nth(&set, n); err != nil || got != want {
			t.Errorf("%d: got %d, %v, want %d", n, got, err, want)
		}
	}
	if got, err := nth(&set, 2); err == nil {
		t.Errorf("the third of two: got %d", got)
	}
}

// TestPin checks that a pinned process runs on one core, and after undo on its previous cores.
func TestPin(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	cores := func() (set unix.CPUSet) {
		if err := unix.SchedGetaffinity(cmd.Process.Pid, &set); err != nil {
			t.Fatal(err)
		}
		return set
	}
	before := cores()
	undo, err := pin(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	if pinned := cores(); pinned.Count() != 1 {
		t.Errorf("pinned, it may use %d cores", pinned.Count())
	}
	undo()
	if after := cores(); after != before {
		t.Error("undo does not undo")
	}
}
