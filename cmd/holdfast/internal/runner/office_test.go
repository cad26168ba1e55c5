//go:build unix

package runner

import (
	"errors"
	"syscall"
	"testing"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
)

// TestOffice: a signal that comes while there is no command ends the election, and no
// command starts after it; one that comes while there is one leaves it the last word.
func TestOffice(t *testing.T) {
	status := func(o *office) int {
		err, ended := o.ending()
		var e *exit.Error
		switch {
		case !ended:
			return -1
		case err == nil:
			return 0
		case errors.As(err, &e):
			return e.Status
		}
		t.Fatal(err)
		return 0
	}
	var waiting office
	if waiting.pass(syscall.SIGHUP, false) || status(&waiting) != -1 {
		t.Error("HUP has ended it")
	}
	if waiting.pass(syscall.SIGTERM, true) || status(&waiting) != 143 {
		t.Errorf("TERM while it waits: %d", status(&waiting))
	}
	waiting.pass(syscall.SIGINT, true)
	if waiting.begin() != nil || status(&waiting) != 143 {
		t.Errorf("a command starts after TERM, or INT counts after it: %d", status(&waiting))
	}

	var leading office
	signals := leading.begin()
	if !leading.pass(syscall.SIGHUP, false) || <-signals != syscall.SIGHUP || status(&leading) != -1 {
		t.Error("HUP was not passed on, or has ended it")
	}
	if !leading.pass(syscall.SIGTERM, true) || <-signals != syscall.SIGTERM || status(&leading) != 143 {
		t.Errorf("TERM while it leads: %d", status(&leading))
	}
	leading.endWith(0)
	leading.end()
	if status(&leading) != 0 || leading.begin() != nil {
		t.Errorf("status %d of a command that has ended with 0, or another starts", status(&leading))
	}
	for range 100 { // nobody reads them
		var stuck office
		stuck.begin()
		stuck.pass(syscall.SIGUSR1, false)
	}
}
