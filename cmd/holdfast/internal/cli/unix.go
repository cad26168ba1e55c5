//go:build unix

package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
	"github.com/holdfast-locks/holdfast/internal/storeurl"
)

// unixCommands returns the commands that need Unix signals and sockets.
func (a *app) unixCommands() []*cobra.Command {
	return []*cobra.Command{
		a.runCommand(), a.electCommand(), a.acquireCommand(), a.extendCommand(), a.heartbeatCommand(), a.releaseCommand(), a.holdCommand(),
	}
}

// onceScriptCommands returns the commands of once for scripts, which need Unix too.
func (a *app) onceScriptCommands() []*cobra.Command {
	return []*cobra.Command{a.onceBeginCommand(), a.onceCompleteCommand(), a.onceFailCommand()}
}

// helper runs the program as its own keeper if args ask for that. It sets up no flags, because
// that takes time.
func helper(args []string) (status int, ok bool) {
	if len(args) == 3 && args[0] == keeper.Command {
		return keeper.Main(), true
	}
	return 0, false
}

// checkNested refuses a command inside a run that would use another store than the run, unless
// its own flag names the store. Most likely it should use the store of the run: in another store
// its locks exclude none of the intended clients. A process that has outlived its run, such as a
// daemon, may use any store.
func (s *session) checkNested(ctx context.Context, choice store.Choice) error {
	outer := s.getenv("HOLDFAST_LOCK_STORE")
	if choice.ByFlag || outer == "" || s.getenv(runner.HeldVariable) == "" || storeurl.Same(choice.Public(), outer) {
		return nil
	}
	if socket := s.getenv(keeper.SocketVariable); socket != "" && socket != keeper.None {
		ctx, cancel := context.WithTimeout(ctx, runTimeout)
		defer cancel()
		if _, err := keeper.Ask(ctx, socket, keeper.Request{Do: keeper.Check}); errors.Is(err, keeper.ErrGone) {
			return nil
		}
	}
	return exit.Errorf(exit.Config, "this command is inside a run on the store %s, and would use %s (%s): "+
		"name the store with --store or --store-file", outer, choice.Public(), choice.Source)
}

// runTimeout is how long the run around this command may take to answer.
const runTimeout = time.Second
