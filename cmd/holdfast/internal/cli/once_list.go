package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire"
)

// onceList lists the keys that are done, in progress, or schedules: all, or those that begin
// with the word behind "list".
func (a *app) onceList(cmd *cobra.Command, words []string) error {
	if len(words) > 2 {
		return usage("once list: want one PREFIX at most; to run a command under the key %q, put -- before it", words[0])
	}
	if err := onlyAsks(cmd, words[0]); err != nil {
		return err
	}
	a.verb, a.subject = "once list", "" // and not a key of this name
	return a.ask(cmd, func(ctx context.Context, c *holdfast.Client) error {
		var entries []holdfast.OnceEntry
		for e, err := range c.OnceList(ctx, strings.Join(words[1:], "")) {
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		slices.SortFunc(entries, func(x, y holdfast.OnceEntry) int { return strings.Compare(x.Key, y.Key) })
		views := make([]wire.Once, len(entries))
		for i, e := range entries {
			views[i] = onceView(e)
		}
		return a.answer(views, render.OnceTable(entries))
	})
}

// onceView returns what programs are told of a do-once key.
func onceView(e holdfast.OnceEntry) wire.Once {
	v := wire.Once{Key: e.Key, State: "unknown"}
	switch e.State {
	case holdfast.OnceScheduled:
		v.State, v.ExpiresInMS, v.Schedule = "schedule", wire.Left(e.ExpiresIn), entryView(e)
	case holdfast.OnceDone:
		v.State, v.ExpiresInMS, v.OutputLength = "done", wire.Left(e.ExpiresIn), &e.Length
		token := wire.TokenOf(e.Token)
		v.Token = &token
	case holdfast.OnceInProgress:
		holder := wire.WhoOf(e.Holder)
		v.State, v.HeldMS, v.ExpiresInMS, v.Holder = "in_progress", wire.Left(e.Since), wire.Left(e.ExpiresIn), &holder
	}
	return v
}

// onceOf returns what has become of the do-once work under the name of a lock, or
// nothing if there was none or the store keeps no results. A lock that is held for
// other things is not in progress.
func onceOf(ctx context.Context, c *holdfast.Client, lock driver.Lock) (holdfast.OnceEntry, error) {
	e, err := c.OnceEntry(ctx, lock.Name)
	switch {
	case errors.Is(err, holdfast.ErrUnsupported):
		return holdfast.OnceEntry{}, nil
	case err == nil && e.State == holdfast.OnceInProgress && !e.Holder.Once:
		return holdfast.OnceEntry{}, nil
	}
	return e, err
}
