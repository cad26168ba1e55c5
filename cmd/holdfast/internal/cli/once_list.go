package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/wire"
	"github.com/holdfast-locks/holdfast/wire/view"
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
			views[i] = view.Once(e)
		}
		return a.answer(views, render.OnceTable(entries))
	})
}
