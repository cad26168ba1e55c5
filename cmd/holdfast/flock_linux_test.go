package main

import (
	"os/exec"
	"testing"
)

// TestFlockAgrees runs the same scripts with flock itself, so that what is expected
// of holdfast is what flock does.
func TestFlockAgrees(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Fatal("install flock, of util-linux, which holdfast run is compared with: ", err)
	}
	for _, c := range flockCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			flockCase(t, "flock", c.script, c.want)
		})
	}
}
