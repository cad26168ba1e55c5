//go:build unix

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

func (a *app) electCommand() *cobra.Command {
	var f jobFlags
	cmd := &cobra.Command{
		Use:   "elect [flags] NAME [--] COMMAND [ARGUMENT...] | elect NAME [flags] -- COMMAND",
		Short: "Run a command on one of several hosts",
		Long: `Elect runs COMMAND while this host leads, that is, while it holds the lock NAME, and waits
while another host leads. Start it on each host.

COMMAND should run on. When it ends, with whatever status, the next host leads, and this one
rejoins the election after a --pause of 1 s, then 2 s, and so on up to a minute. If the lead
is lost, COMMAND and all its descendants are stopped before another host can lead.

TERM and INT end elect: COMMAND gets the signal, and the next host leads when all processes
have ended. HUP is passed on, to reload COMMAND; from a terminal it ends elect. Under systemd
elect reports whether it waits or leads. With --stall-after, or WatchdogSec= in its unit,
COMMAND must send WATCHDOG=1 as in sd_notify(3), or it loses the lead.

The exit status is COMMAND's when a signal has ended elect, 128 + n if signal n came while
another host led, or
   69  the store did not answer at the start   126  COMMAND cannot be executed
   79  a process could not be stopped          127  COMMAND does not exist
or one of those in holdfast --help.`,
		Example: `  holdfast elect scheduler -- ./scheduler
  holdfast elect --ttl 10s --stall-after 5s --store redis://redis.internal:6379 ingest -- ./ingest`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.elect(&f, args) },
	}
	cmd.Flags().SetInterspersed(false) // arguments after NAME belong to the command, unless a -- follows
	f.define(cmd, "command ttl stall-after pause kill-after reason label quiet verbose")
	cmd.Flags().Lookup("stall-after").Usage = "stop COMMAND if it has not sent WATCHDOG=1 for this long (default: $WATCHDOG_USEC)"
	return cmd
}

func (a *app) elect(f *jobFlags, args []string) error {
	command, err := f.split(args)
	if err != nil {
		return err
	}
	e := runner.Election{Pause: f.pause, Terminal: hasTerminal()}
	if e.Job, err = a.commandJob(f, command); err != nil {
		return err
	}
	stop, err := a.manager(&e)
	if err != nil {
		return err
	}
	defer stop()
	e.NewLine = func() *show.WaitLine { return a.waitLine(f.quiet, f.verbose) }
	ctx := f.cmd.Context()
	return a.session().work(ctx, f, &e.Job, func() error {
		e.StoreEnv = append(e.StoreEnv, supervise.NotifyEnvironment(e.Socket, e.Opts.StallAfter)...)
		return runner.Elect(ctx, e)
	})
}

// manager finds the service manager that has started this program. If there is one, or a
// watchdog, it makes a socket for the command. stop ends both.
func (a *app) manager(e *runner.Election) (stop func(), err error) {
	ours := supervise.Watchdog(a.getenv)
	if e.Manager, err = supervise.FindManager(a.getenv); err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("elect: %w", err))
	}
	if e.Opts.StallAfter == 0 {
		e.Opts.StallAfter = ours
	}
	supervise.ForgetManager()
	if e.Manager != nil || e.Opts.StallAfter > 0 {
		path, err := keeper.NewPath(a.getenv)
		if err == nil {
			e.Socket, err = supervise.ListenNotify(path)
		}
		if err != nil {
			return nil, exit.With(exit.Config, fmt.Errorf("elect: %w", err))
		}
	}
	quiet := e.Manager.Ping(ours)
	return func() {
		quiet()
		e.Socket.Close()
	}, nil
}

// hasTerminal reports whether this process has a terminal, which hangs up when it is
// closed.
func hasTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err == nil
}
