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

// These replace the commands that need unix.

func (a *app) runCommand() *cobra.Command { return needsUnix("run", "Run a command under a lock") }

func (a *app) acquireCommand() *cobra.Command {
	return needsUnix("acquire", "Take a lock for a script")
}

func (a *app) electCommand() *cobra.Command {
	return needsUnix("elect", "Run a command on one of several hosts")
}

func (a *app) holdCommand() *cobra.Command { return needsUnix("hold", "Hold a lock yourself") }

func (a *app) onceBeginCommand() *cobra.Command { return needsUnix("begin", "Begin do-once work") }

func (a *app) onceCompleteCommand() *cobra.Command {
	return needsUnix("complete", "Record the result of do-once work")
}

func (a *app) onceFailCommand() *cobra.Command { return needsUnix("fail", "End do-once work") }

func (a *app) extendCommand() *cobra.Command { return needsUnix("extend", "Lengthen a lease") }

func (a *app) heartbeatCommand() *cobra.Command {
	return needsUnix("heartbeat", "Tell that work goes on")
}

func (a *app) releaseCommand() *cobra.Command { return needsUnix("release", "Give a lock back") }

func (a *app) checkLease(context.Context, bool) error { return errNeedsUnix("check without NAME") }

func (a *app) once(*jobFlags, []string, []string) error {
	return errNeedsUnix("once KEY -- COMMAND")
}

func (s *session) checkNested(context.Context, store.Choice) error { return nil }

func (f *jobFlags) reportFlagErrors() {}

func helper([]string) (status int, ok bool) { return 0, false }

// needsUnix returns a command that takes any arguments and fails.
func needsUnix(verb, short string) *cobra.Command {
	return &cobra.Command{
		Use:                verb,
		Short:              short + " (needs unix)",
		DisableFlagParsing: true,
		RunE:               func(*cobra.Command, []string) error { return errNeedsUnix(verb) },
	}
}

// errNeedsUnix is the error of a command that needs unix.
func errNeedsUnix(verb string) error {
	return exit.With(exit.Config, fmt.Errorf("%s: needs unix, whose signals stop a command before another client can get its lock: "+
		"use it on Linux, macOS or a BSD; %s has the commands that read, token, once status and break", verb, runtime.GOOS))
}
