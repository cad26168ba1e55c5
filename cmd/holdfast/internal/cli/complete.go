package cli

import (
	"context"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// completeTimeout bounds how long a shell waits for names, including the time to open the
// store.
const completeTimeout = 300 * time.Millisecond

// maxCompletions is how many names a shell gets at most.
const maxCompletions = 1000

func (a *app) completionCommand() *cobra.Command {
	shells := map[string]func(*cobra.Command, io.Writer) error{
		"bash": func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) },
		"zsh":  (*cobra.Command).GenZshCompletion,
		"fish": func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) },
	}
	names := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a shell script that completes commands, flags and names of locks",
		Long: `Completion prints a script for the shell. It also completes names of locks and keys, if the
store answers within 300 ms. Bash needs the package bash-completion.`,
		Example: `  source <(holdfast completion bash)      # in ~/.bashrc
  holdfast completion zsh >"${fpath[1]}/_holdfast"
  holdfast completion fish >~/.config/fish/completions/holdfast.fish`,
		ValidArgs: names,
		Args:      cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(names, args[0]) {
				return usage("completion: want bash, zsh or fish")
			}
			var script strings.Builder
			if err := shells[args[0]](cmd.Root(), &script); err != nil {
				return err
			}
			return a.answer(nil, script.String())
		},
	}
}

// setUpCompletion sets the completions of the arguments and flags of all commands. Only the
// scripts of completionCommand, which call the command __complete, need it.
func (a *app) setUpCompletion(c *cobra.Command) {
	switch {
	case strings.Contains(c.Use, "KEY"):
		c.ValidArgsFunction = a.completing(onceKeys)
	case strings.Contains(c.Use, "NAME"), strings.Contains(c.Use, "PREFIX"):
		c.ValidArgsFunction = a.completing(lockNames)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		value, _ := pflag.UnquoteUsage(f)
		switch {
		case strings.HasSuffix(f.Name, "file"): // the shell completes files
		case f.Name == "name":
			_ = c.RegisterFlagCompletionFunc(f.Name, a.completing(lockNames))
		case strings.Contains(value, "|"):
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(strings.Split(value, "|"), cobra.ShellCompDirectiveNoFileComp))
		default:
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
	for _, sub := range c.Commands() {
		a.setUpCompletion(sub)
	}
}

// A completer returns the completions of prefix.
type completer func(ctx context.Context, c *holdfast.Client, prefix string) []string

// completing completes the first argument with f, and later ones as files, because they belong to
// a command to run.
func (a *app) completing(f completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return a.completions(cmd, prefix, f), cobra.ShellCompDirectiveNoFileComp
	}
}

// completions calls f and waits for at most completeTimeout. A call that takes longer ends with
// the program.
func (a *app) completions(cmd *cobra.Command, prefix string, f completer) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	found := make(chan []string, 1)
	go func() { // ends with ctx, or with the program
		var names []string
		_ = a.session().ask(ctx, func(ctx context.Context, c *holdfast.Client) error {
			names = f(ctx, c, prefix)
			return nil
		})
		found <- names
	}()
	select {
	case names := <-found:
		return names
	case <-ctx.Done():
		return nil
	}
}

// lockNames completes the names of locks that are held or waited for.
func lockNames(ctx context.Context, c *holdfast.Client, prefix string) []string {
	return sorted(c.List(ctx, prefix), func(lock lockinfo.LockState) string { return lock.Name })
}

// onceKeys completes the keys of work that is done, or in progress.
func onceKeys(ctx context.Context, c *holdfast.Client, prefix string) []string {
	return sorted(c.Records().List(ctx, prefix), func(work holdfast.OnceRecord) string { return work.Key })
}

// sorted returns the names of what a store lists, up to an error.
func sorted[T any](list iter.Seq2[T, error], name func(T) string) (names []string) {
	for item, err := range list {
		if err != nil || len(names) == maxCompletions {
			break
		}
		names = append(names, name(item))
	}
	slices.Sort(names)
	return names
}
