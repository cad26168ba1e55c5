package drivertest

import (
	"strings"
	"testing"
)

// stay is a goroutine that does not end by itself.
func stay(end <-chan struct{}) { <-end }

// TestGoroutines: a goroutine of ours is seen until it has ended, unless it may stay.
func TestGoroutines(t *testing.T) {
	end := make(chan struct{})
	go stay(end)
	packages := []string{"drivertest.stay"}
	Eventually(t, "it is seen", func() bool { return strings.Contains(goroutines(packages, nil), "drivertest.stay") })
	if left := goroutines(packages, []string{"drivertest.stay"}); left != "" {
		t.Errorf("it may stay, and is told:\n%s", left)
	}
	if left := goroutines([]string{"/rueidis"}, nil); left != "" {
		t.Errorf("another package's are told:\n%s", left)
	}
	close(end)
	Eventually(t, "it has ended", func() bool { return goroutines(packages, nil) == "" })
}
