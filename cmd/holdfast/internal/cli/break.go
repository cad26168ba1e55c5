//go:build unix

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/driver"
)

func (a *app) breakCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "break NAME --reason TEXT",
		Short: "Take a lock away from all who hold it",
		Long: `Break ends every lease of the lock NAME, whoever has it. The first of the queue
has the lock at once. A holder that lives is told with its next renewal, within a
third of its TTL: holdfast run then stops its command, with status 79. Until then
two may be at work; only a resource that checks fencing tokens is safe.

The exit status is 0 if somebody held the lock, 1 if nobody did.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return usage("break: no reason given: say with --reason why the lock is taken away")
			}
			return a.withClient(cmd.Context(), nil, func(c *holdfast.Client, _ string) error {
				return a.breakLock(cmd.Context(), c, args[0], reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` that says why; required")
	a.addJSONFlag(cmd)
	return cmd
}

func (a *app) breakLock(ctx context.Context, c *holdfast.Client, name, reason string) error {
	before, err := c.Inspect(ctx, name)
	if err != nil {
		return exit.FromStore(err)
	}
	if slices.ContainsFunc(before.Holders, foreign) {
		return exit.With(exit.Config, fmt.Errorf("break %q: a client that is not holdfast has it: stop that client, "+
			"or if it is dead, delete its key in the store", name))
	}
	records, err := c.Break(ctx, name, &holdfast.BreakOptions{Reason: reason})
	broken := holdingsOf(before, records)
	if printErr := a.printBroken(before, broken, reason); err == nil {
		err = printErr
	}
	switch {
	case err != nil:
		return exit.FromStore(err)
	case len(broken) == 0:
		return &exit.Error{Status: exit.Not}
	}
	return nil
}

// holdingsOf returns what was known, before the break, of the leases that it
// ended.
func holdingsOf(before driver.Lock, records []holdfast.Broken) (broken []driver.Holding) {
	for _, h := range before.Holders {
		if slices.ContainsFunc(records, func(b holdfast.Broken) bool { return b.Token == h.Token }) {
			broken = append(broken, h)
		}
	}
	return broken
}

// printBroken tells who has lost the lock.
func (a *app) printBroken(before driver.Lock, broken []driver.Holding, reason string) error {
	if len(broken) > 0 {
		a.say("broke %q: %s", before.Name, plain(reason))
	}
	if a.json {
		return printJSON(a.stdout, breakView{Name: before.Name, Reason: reason, Broken: holderViews(broken)})
	}
	for _, h := range broken {
		if _, err := fmt.Fprintf(a.stdout, "%s was %s, with token %d\n", plain(before.Name), possession(h), h.Token); err != nil {
			return err
		}
	}
	switch {
	case len(broken) > 0:
		return nil
	case len(live(before)) > 0:
		_, err := fmt.Fprintf(a.stdout, "%s was given back meanwhile\n", plain(before.Name))
		return err
	}
	return printLine(a.stdout, before)
}
