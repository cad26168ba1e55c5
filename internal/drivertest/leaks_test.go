package drivertest

import (
	"strings"
	"testing"
)

// stay runs until end is closed.
func stay(end <-chan struct{}) { <-end }

// TestGoroutines checks that goroutines reports a running goroutine of the packages, unless it may
// stay.
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
