//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/control"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/held"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
	"github.com/holdfast-locks/holdfast/stores"
)

// checkNested refuses a command inside a run that would use another store than
// that run does, unless a flag of its own says so. Most likely it was meant to
// find the run's: it would take locks that keep out none of those who were meant.
// What outlives its run, as a daemon does, may go where it likes.
func (a *app) checkNested(ctx context.Context, choice store.Choice) error {
	outer := a.asked.Getenv("HOLDFAST_LOCK_STORE")
	if choice.ByFlag || outer == "" || a.asked.Getenv(held.Variable) == "" || stores.Same(choice.Public(), outer) {
		return nil
	}
	if socket := a.asked.Getenv(control.Variable); socket != "" && socket != control.None {
		ctx, cancel := context.WithTimeout(ctx, runTimeout)
		defer cancel()
		if _, err := control.Ask(ctx, socket, control.Request{Do: control.Check}); errors.Is(err, control.ErrGone) {
			return nil
		}
	}
	return exit.With(exit.Config, fmt.Errorf("this command is inside a run on the store %s, and would use %s (%s): "+
		"say which store it is to use with --store or --store-file", outer, choice.Public(), choice.Source))
}

// runTimeout is how long the run around this command has to say that it lives.
const runTimeout = time.Second
