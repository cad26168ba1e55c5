package drivertest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// ExitWithoutLeaks runs the tests and ends the program. It fails if goroutines are left whose
// stack contains one of the packages, unless the stack also contains a function of mayStay. It
// needs no library, because users of an engine would have it in their module lists.
func ExitWithoutLeaks(m *testing.M, packages []string, mayStay ...string) {
	status := m.Run()
	for end := time.Now().Add(5 * time.Second); status == 0; time.Sleep(10 * time.Millisecond) {
		left := goroutines(packages, mayStay)
		if left == "" {
			break
		}
		if time.Now().After(end) {
			fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
			status = 1
		}
	}
	os.Exit(status)
}

// goroutines returns the stacks that contain one of the packages, except the caller's.
func goroutines(packages, mayStay []string) (all string) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, stack := range strings.Split(string(stacks), "\n\n")[1:] {
		has := func(part string) bool { return strings.Contains(stack, part) }
		if slices.ContainsFunc(packages, has) && !slices.ContainsFunc(mayStay, has) {
			all += stack + "\n\n"
		}
	}
	return all
}
