//go:build unix

package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runWords are the arguments of run, or of elect, that are not flags.
type runWords struct {
	names   []string // the NAME argument; none with -N
	command []string
}

// splitRun separates the name from the command. Flags may follow the name if a "--" ends
// them; otherwise everything after the name belongs to the command. With -N there is no NAME
// argument, and the command must follow a "--", so that a name is not run as a command.
func splitRun(cmd *cobra.Command, named bool, args []string) (w runWords, err error) {
	switch {
	case named && len(args) > 0 && cmd.ArgsLenAtDash() != 0:
		return w, notNamed(args[0])
	case named:
		return runWords{command: args}, nil
	case len(args) == 0:
		return w, usage("%s: no lock name given", cmd.Name())
	}
	w.names, w.command = args[:1], args[1:]
	if len(w.command) > 0 && len(w.command[0]) > 1 && strings.HasPrefix(w.command[0], "-") {
		w.command, err = flagsAfterName(cmd, w.command)
	}
	if err == nil && cmd.Flags().Changed("name") {
		err = notNamed(args[0])
	}
	return w, err
}

// notNamed refuses a NAME argument together with -N.
func notNamed(word string) error {
	return usage("run: %q: with -N each name needs its own -N, and the command follows a --", word)
}

// flagsAfterName parses the flags after the name and returns the command after the "--", or
// nothing if -c has the command.
func flagsAfterName(cmd *cobra.Command, args []string) (command []string, err error) {
	// The flags are the same, in a set that finds the "--" in args.
	flags := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	flags.SetNormalizeFunc(ofFlock)
	flags.SetInterspersed(false)
	flags.AddFlagSet(cmd.Flags())
	if err := flags.Parse(args); err != nil {
		return nil, flagError(cmd, err)
	}
	command = flags.Args()
	switch {
	case flags.Changed("help"):
		return nil, pflag.ErrHelp // cobra prints it
	case flags.ArgsLenAtDash() == 0, len(command) == 0 && flags.Changed("command"), flags.Changed("version"):
		return command, nil
	}
	return nil, usage("%s: %q follows the name: put flags in front of it, or a -- between them and the command", cmd.Name(), args[0])
}
