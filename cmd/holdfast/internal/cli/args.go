package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/driver"
)

// words wants least to most arguments. The error shows the form of the command.
func words(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		verb, form := verbOf(cmd), cmd.Use
		if cmd.HasParent() {
			form = cmd.Parent().CommandPath() + " " + form
		}
		switch {
		case len(args) > most:
			return usage("%s: %q is too much: want %s", verb, args[most], form)
		case len(args) < least:
			return usage("%s: want %s", verb, form)
		}
		return nil
	}
}

// names is words for names of locks. It refuses an invalid name before a store is made.
func names(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := words(least, most)(cmd, args); err != nil {
			return err
		}
		for _, name := range args {
			if err := driver.CheckName(name); err != nil {
				return usage("%s: %w", verbOf(cmd), err)
			}
		}
		return nil
	}
}

// verbOf returns the name of a command in messages: "run", "token issue".
func verbOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}
