package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/wire"
)

func (a *app) historyCommand() *cobra.Command {
	cmd := a.question("history NAME", "Show what happened to a lock in the last 24 hours", names(1, 1),
		func(ctx context.Context, c *holdfast.Client, args []string) error {
			events, err := c.History(ctx, args[0])
			if errors.Is(err, holdfast.ErrUnsupported) {
				return exit.With(exit.Config, fmt.Errorf("history of %q: %s", args[0], a.withoutHistory()))
			}
			if err != nil {
				return err
			}
			return a.answer(wire.HistoryOf(args[0], events), render.History(args[0], events))
		})
	cmd.Long = `History tells what happened to NAME, the oldest first: who was granted the lock, at
once or after a wait, gave it back, lost it, or had it taken away; who waited in vain;
what ran out because nobody renewed it, and what was done once. The store keeps the
latest 64 events of each name, for 24 hours.

It is off unless the URL of the store has history=1, as in
  --store sqlite:///path/file.db?history=1
What commands do whose URL lacks it is not in it, so put it where the store is named
for all: $HOLDFAST_STORE, or /etc/holdfast.conf. A quorum has no history.

The exit status is 0 even if nothing happened, or
  64  wrong arguments                  77   the store refuses our rights
  69  the store cannot be reached      78   history is off, or the store has none`
	cmd.Example = `  holdfast history deploy
  holdfast history deploy --json | jq -r '.events[] | select(.event == "expired") | .holder.host'`
	return cmd
}

// withoutHistory says why there is none, and what to do.
func (a *app) withoutHistory() string {
	store := a.choice.Public()
	switch scheme, _, _ := strings.Cut(store, ":"); {
	case strings.HasPrefix(scheme, "quorum"):
		return "a quorum has no history, and " + store + " is one"
	case strings.HasPrefix(scheme, "http"):
		return "the server at " + store + " has none: it must be started on a store that has history=1 in its URL"
	}
	with := "?history=1"
	if strings.Contains(store, "?") {
		with = "&history=1"
	}
	return "it is off: name the store as " + store + with + ", wherever its locks are used"
}
