//go:build !unix

package cli

import (
	"context"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
)

// unixCommands returns the commands that fail here.
func (a *app) unixCommands() (all []*cobra.Command) {
	return needUnix("run", "Run a command under a lock", "elect", "Run a command on one of several hosts",
		"acquire", "Take a lock for a script", "extend", "Lengthen a lease", "heartbeat", "Report progress",
		"release", "Release a lock", "hold", "Hold a lock yourself")
}

// onceScriptCommands returns the commands of once that fail here.
func (a *app) onceScriptCommands() []*cobra.Command {
	return needUnix("begin", "Begin do-once work", "complete", "Record the result of do-once work", "fail", "End do-once work")
}

func (a *app) checkLease(context.Context, bool) error { return errNeedsUnix("check without NAME") }

func (a *app) once(*jobFlags, []string, []string) error {
	return errNeedsUnix("once KEY -- COMMAND")
}

func (s *session) checkNested(context.Context, store.Choice) error { return nil }

func (f *jobFlags) reportFlagErrors() {}

func helper([]string) (status int, ok bool) { return 0, false }

// needUnix returns commands that take any arguments and fail. texts has their names, each
// followed by its help.
func needUnix(texts ...string) (all []*cobra.Command) {
	for text := range slices.Chunk(texts, 2) {
		all = append(all, &cobra.Command{
			Use: text[0], Short: text[1] + " (needs unix)", DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error { return errNeedsUnix(text[0]) },
		})
	}
	return all
}

// errNeedsUnix is the error of a command that needs unix.
func errNeedsUnix(verb string) error {
	return exit.Errorf(exit.Config, "%s: needs unix, whose signals stop a command before another client can get its lock: "+
		"use it on Linux, macOS or a BSD; %s has the commands that read, token, once status and break", verb, runtime.GOOS)
}
