package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
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
			return a.answer(wire.HistoryOf(args[0], events), show.History(args[0], events))
		})
	cmd.Long = `History lists the events of NAME, oldest first: leases that were granted, released, lost or
broken, or that expired; clients that gave up waiting; do-once work that was done. The store
keeps the latest 64 events of each name, for 24 hours.

It is off unless the URL of the store has history=1, as in
  --store sqlite:///path/file.db?history=1
Commands without it in their URL record nothing, so put it where all of them read the URL:
$HOLDFAST_STORE, or /etc/holdfast.conf. A quorum has no history.

The exit status is 0 even if there are no events, 78 if history is off, or one of those in
holdfast --help.`
	cmd.Example = `  holdfast history deploy
  holdfast history deploy --json | jq -r '.events[] | select(.event == "expired") | .holder.host'`
	return cmd
}

// withoutHistory explains why there is no history, and what to do.
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
	return "it is off: name the store as " + store + with + ", in all programs that use its locks"
}
