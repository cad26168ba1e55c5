//go:build unix

package runner

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
)

// TestOnceVerdict checks the status of a command that has ended, by what became of its record.
// INVARIANT I4: a record that the store refuses is a loss.
func TestOnceVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
	}{
		"recorded":               {nil, 0},
		"refused by the store":   {fmt.Errorf("once %q: %w", "job", holdfast.ErrLost), exit.Lost},
		"the command failed":     {&exit.Error{Status: 3}, 3},
		"failed, and was a loss": {errors.Join(holdfast.ErrLost, &exit.Error{Status: 3}), exit.Lost},
		"held for too long":      {errors.Join(holdfast.ErrLost, &exit.Error{Status: exit.MaxHold}), exit.MaxHold},
		"lost, and stopped":      {errors.Join(&exit.Error{Status: exit.Lost, Err: errUnanswered}, holdfast.ErrLost), exit.Lost},
		"somebody else runs it":  {&holdfast.InProgressError{}, 9},
		"the store is silent":    {holdfast.ErrOutcomeUnknown, exit.Unavailable},
	} {
		o := &once{output: new(capture)}
		o.Names, o.Busy = []string{"job"}, 9
		got := 0
		var e *exit.Error
		if err := o.verdict(c.err); errors.As(err, &e) {
			got = e.Status
		} else if err != nil {
			t.Errorf("%s: %v is not an exit", name, err)
		}
		if got != c.status {
			t.Errorf("%s: status %d, want %d", name, got, c.status)
		}
	}
}
