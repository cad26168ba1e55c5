//go:build !unix

package cli

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
)

// What stands in files for unix has its place here on other systems, in a line
// each.

func (a *app) runCommand() *cobra.Command { return needsUnix("run", "Run a command under a lock") }

func (a *app) acquireCommand() *cobra.Command {
	return needsUnix("acquire", "Take a lock for a script")
}

func (a *app) electCommand() *cobra.Command {
	return needsUnix("elect", "Run a command on one of several hosts")
}

func (a *app) holdCommand() *cobra.Command { return needsUnix("hold", "Hold a lock yourself") }

func (a *app) onceStep(_ *cobra.Command, _ *onceFlags, words []string) error {
	return errNeedsUnix("once " + words[0])
}

func (a *app) extendCommand() *cobra.Command { return needsUnix("extend", "Lengthen a lease") }

func (a *app) progressCommand() *cobra.Command {
	return needsUnix("progress", "Tell that work goes on")
}

func (a *app) releaseCommand() *cobra.Command { return needsUnix("release", "Give a lock back") }

func (a *app) checkLease(context.Context, bool) error { return errNeedsUnix("check without NAME") }

func (a *app) once(*cobra.Command, *onceFlags, []string, []string) error {
	return errNeedsUnix("once KEY -- COMMAND")
}

func (a *app) checkNested(context.Context, store.Choice) error { return nil }

func (f *jobFlags) reportFlagErrors(*cobra.Command) {}

func helper([]string) (status int, ok bool) { return 0, false }

// needsUnix returns a command that takes whatever it is given, and refuses it.
func needsUnix(verb, short string) *cobra.Command {
	return &cobra.Command{
		Use:                verb,
		Short:              short + " (needs unix)",
		DisableFlagParsing: true,
		RunE:               func(*cobra.Command, []string) error { return errNeedsUnix(verb) },
	}
}

// errNeedsUnix says that nothing was done.
func errNeedsUnix(verb string) error {
	return exit.With(exit.Config, fmt.Errorf("%s: needs unix, whose signals stop a command before its lock can be anybody else's: "+
		"use it on Linux, macOS or a BSD; %s has the commands that read, token, once status and break", verb, runtime.GOOS))
}
