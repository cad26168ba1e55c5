package cli

import (
	"cmp"
	"context"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

func (a *app) watchCommand() *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "watch [PREFIX]",
		Short: "Watch the locks that are held or waited for, all or those whose names begin with PREFIX",
		Long: `Watch redraws the table of holdfast ls on a terminal, the longest queues first, then the
locks held longest. q and Ctrl-C end it, Ctrl-Z suspends it. With TERM=dumb it prints the
table again after each change. Elsewhere, and with --json, it prints a line of JSON for each
change: a lock has appeared, has other holders or another queue, or is gone.

It reads the locks at each --interval, or less often if a reading takes more than a fifth of
it. If the store keeps history, it also reads them after each event, and JSON has a line for
the event. It retries while the store does not answer.

The exit status is 0 after q and Ctrl-C. Others: holdfast --help.`,
		Example: `  holdfast watch deploy/
  holdfast watch --json | jq -c 'select(.change == "gone") | .name'`,
		Args: words(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd, func(ctx context.Context, c *holdfast.Client) error {
				return a.watch(ctx, c, strings.Join(args, ""), interval)
			})
		},
	}
	durationVar(cmd.Flags(), &interval, "interval", 2*time.Second, limits{100 * time.Millisecond, time.Hour}, "time between two looks")
	return a.withJSON(cmd)
}

func (a *app) watch(ctx context.Context, c *holdfast.Client, prefix string, interval time.Duration) error {
	wake := make(chan struct{}, 1)
	rounds := show.Rounds{
		List: func(ctx context.Context) iter.Seq2[lockinfo.LockState, error] { return c.List(ctx, prefix) },
		Probe: func(ctx context.Context) error {
			_, err := c.Inspect(ctx, "holdfast-watch") // any name will do: reading leaves nothing behind
			return err
		},
		Interval: interval,
		Wake:     wake,
	}
	events := func(ctx context.Context, tell func(holdfast.HistoryEvent)) { heed(ctx, c, prefix, wake, tell) }
	if a.json || show.WidthOf(a.stdout) == 0 {
		return a.printChanges(ctx, rounds, events)
	}
	title := a.choice.Public()
	if prefix != "" {
		title += "  " + prefix + "*"
	}
	table := &show.LiveTable{Title: title, Every: interval, Plain: a.getenv("NO_COLOR") != ""}
	go events(ctx, func(holdfast.HistoryEvent) {}) // ends with the client
	out := a.stdout.(*os.File)                     // only an *os.File has a width
	if screen := show.TerminalOf(out, a.getenv("TERM")); screen != nil {
		return showTable(ctx, screen, out, table, rounds)
	}
	return a.printTables(ctx, table, rounds)
}

// printTables prints the table again whenever it has changed, for a terminal that cannot
// rewrite a line.
func (a *app) printTables(ctx context.Context, table *show.LiveTable, rounds show.Rounds) error {
	a.answered = true
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var last show.Round
	err := rounds.Run(ctx, func(r show.Round) {
		table.Tell(r)
		if last.At.IsZero() || (r.Err == nil) != (last.Err == nil) || len(show.Changes(last.Locks, r.Locks)) > 0 {
			if _, err := io.WriteString(a.stdout, table.Text(r.At, show.WidthOf(a.stdout))+"\n"); err != nil {
				cancel(exit.With(exit.Output, err))
			}
		}
		last = r
	})
	return cmp.Or(err, context.Cause(ctx))
}

// heed passes on the events of the store and wakes the rounds, until ctx or the client ends. A
// store without history has no events.
func heed(ctx context.Context, c *holdfast.Client, prefix string, wake chan<- struct{}, tell func(holdfast.HistoryEvent)) {
	for event, err := range c.Feed(ctx, prefix) {
		if err != nil {
			return
		}
		tell(event)
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// printChanges prints a line of JSON for each change, and for each event if the store has
// history.
func (a *app) printChanges(ctx context.Context, rounds show.Rounds, events func(context.Context, func(holdfast.HistoryEvent))) error {
	a.answered = true // standard output has lines of JSON
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lines := show.JSON(a.stdout)
	var mu sync.Mutex // of lines
	print := func(c wire.Change) {
		mu.Lock()
		defer mu.Unlock()
		if err := lines.Encode(c); err != nil {
			cancel(exit.With(exit.Output, err))
		}
	}
	go events(ctx, func(e holdfast.HistoryEvent) { // ends with ctx
		event := wire.HistoryEventOf(e)
		print(wire.Change{Change: "event", Name: e.Name, Event: &event})
	})
	var last show.Round
	err := rounds.Run(ctx, func(r show.Round) {
		switch {
		case r.Err != nil && last.Err == nil:
			print(wire.Change{Change: "store_away", Reason: r.Err.Error()})
		case r.Err == nil && last.Err != nil:
			print(wire.Change{Change: "store_back"})
		}
		if r.Err != nil {
			r.Locks = last.Locks
		}
		for _, c := range show.Changes(last.Locks, r.Locks) {
			print(c)
		}
		last = r
	})
	return cmp.Or(err, context.Cause(ctx))
}
