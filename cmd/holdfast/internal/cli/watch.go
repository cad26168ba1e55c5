package cli

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/terminal"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/watch"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	minInterval = 100 * time.Millisecond
	maxInterval = time.Hour
)

func (a *app) watchCommand() *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "watch [PREFIX]",
		Short: "Watch the locks that are held or waited for, all or those whose names begin with PREFIX",
		Long: `Watch shows a live table on a terminal: first the locks that most wait for, then
those that have been held for longest. WAITING is the length of the queue, LEASE what
is left of the lease, which goes up again when its holder renews it. q and Ctrl-C
end it, Ctrl-Z stops it until fg.

Elsewhere, and with --json, it prints a line of JSON for each change: a lock that has
appeared, has another holder or another queue, or is gone.

It looks every 2 s, or as often as --interval says, and less often if that would take
more than a fifth of the time. If the store has history (see holdfast history), it also
looks as soon as something happens, and JSON has a line for each event, so that none is
missed that is over before the next look. A store that does not answer is shown, and looked at
again.

The exit status is 0 after q and Ctrl-C, or
  64  wrong arguments                  77   the store refuses our rights
  69  the store cannot be opened       78   the store cannot do this
  74  standard output cannot be written
  128 + n if signal n ended it`,
		Example: `  holdfast watch deploy/
  holdfast watch --json | jq -c 'select(.change == "gone") | .name'`,
		Args: words(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval < minInterval || interval > maxInterval {
				return usage("watch: --interval %s: want %s to %s", interval, minInterval, maxInterval)
			}
			return a.ask(cmd, func(ctx context.Context, c *holdfast.Client) error {
				return a.watch(ctx, c, strings.Join(args, ""), interval)
			})
		},
	}
	durationVar(cmd.Flags(), &interval, "interval", 2*time.Second, "time between two looks")
	return a.withJSON(cmd)
}

func (a *app) watch(ctx context.Context, c *holdfast.Client, prefix string, interval time.Duration) error {
	rounds := watch.Rounds{
		List: func(ctx context.Context) iter.Seq2[driver.Lock, error] { return c.List(ctx, prefix) },
		Probe: func(ctx context.Context) error {
			_, err := c.Inspect(ctx, "holdfast-watch") // any name will do: to look leaves nothing
			return err
		},
		Interval: interval,
	}
	wake := make(chan struct{}, 1)
	events := func(context.Context, func(holdfast.HistoryEvent)) {}
	if c.Features().History {
		rounds.Wake = wake
		events = func(ctx context.Context, tell func(holdfast.HistoryEvent)) { heed(ctx, c, prefix, wake, tell) }
	}
	out, ok := a.stdout.(*os.File)
	if ok && !a.json {
		if screen := terminal.Of(out, a.asked.Getenv("TERM")); screen != nil {
			table := &watch.Table{Title: a.watched(prefix), Every: interval, Plain: a.asked.Getenv("NO_COLOR") != ""}
			go events(ctx, func(holdfast.HistoryEvent) {}) // ends with the client
			return showTable(ctx, screen, out, table, rounds)
		}
	}
	return a.printChanges(ctx, rounds, events)
}

// heed tells of what happens, and wakes those who look at the locks, until ctx or the
// client ends.
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

// watched says what is watched: of which store, and which names.
func (a *app) watched(prefix string) string {
	text := a.choice.Public()
	if prefix != "" {
		text += "  " + prefix + "*"
	}
	return text
}

// printChanges prints a line of JSON for each change, and for each event of a store that
// has history.
func (a *app) printChanges(ctx context.Context, rounds watch.Rounds, events func(context.Context, func(holdfast.HistoryEvent))) error {
	a.answered = true // what comes to standard output is lines
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lines := json.NewEncoder(a.stdout)
	lines.SetEscapeHTML(false)
	var last []driver.Lock
	away := false
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
	err := rounds.Run(ctx, func(r watch.Round) {
		if r.Err != nil {
			if !away {
				print(wire.Change{Change: "store_away", Reason: r.Err.Error()})
			}
			away = true
			return
		}
		if away {
			print(wire.Change{Change: "store_back"})
		}
		away = false
		for _, c := range watch.Changes(last, r.Locks) {
			print(changeView(c))
		}
		last = r.Locks
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// changeView returns what programs are told of a change.
func changeView(c watch.Change) wire.Change {
	v := wire.Change{Change: c.What, Name: c.Lock.Name}
	if c.What != watch.Gone {
		lock := wire.LockOf(c.Lock)
		v.Lock = &lock
	}
	return v
}
