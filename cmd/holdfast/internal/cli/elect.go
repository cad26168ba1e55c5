//go:build unix

package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
	"github.com/holdfast-locks/holdfast/driver"
)

// electFlags are the flags of elect as they were given.
type electFlags struct {
	jobFlags
	stallAfter time.Duration
	pause      time.Duration
}

func (a *app) electCommand() *cobra.Command {
	var f electFlags
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
		RunE: func(cmd *cobra.Command, args []string) error { return a.elect(cmd, &f, args) },
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // arguments after NAME belong to the command, unless a -- follows
	flags.SortFlags = false
	f.defineCommand(flags)
	f.defineTTL(flags)
	durationVar(flags, &f.stallAfter, "stall-after", 0, "stop COMMAND if it has not sent WATCHDOG=1 for this long (default: $WATCHDOG_USEC)")
	durationVar(flags, &f.pause, "pause", time.Second, "wait before rejoining the election after COMMAND ends; doubled each time, up to a minute")
	f.defineKill(flags)
	f.defineTexts(flags)
	return cmd
}

func (a *app) elect(cmd *cobra.Command, f *electFlags, args []string) error {
	words, err := splitRun(cmd, false, args)
	if err != nil {
		return err
	}
	a.defaultTTL(cmd, &f.ttl)
	e := runner.Election{Job: runner.Job{Names: words.names}}
	if err := f.election(cmd, &e, words.command); err != nil {
		return err
	}
	if e.Path, err = runner.LookPath("elect", e.Args[0]); err != nil {
		return err
	}
	stop, err := a.manager(&e)
	if err != nil {
		return err
	}
	defer stop()
	e.Terminal = hasTerminal()
	e.NewLine = func() *show.WaitLine { return a.waitLine(f.quiet, f.verbose) }
	return a.session().work(cmd.Context(), &f.jobFlags, &e.Job, func() error {
		e.StoreEnv = append(e.StoreEnv, supervise.NotifyEnvironment(e.Socket, e.Opts.StallAfter)...)
		return runner.Elect(cmd.Context(), e)
	})
}

// election checks the arguments, before anything happens.
func (f *electFlags) election(cmd *cobra.Command, e *runner.Election, command []string) (err error) {
	if e.Args, err = f.command(cmd, command); err != nil {
		return err
	}
	if err := driver.CheckName(e.Names[0]); err != nil {
		return usage("elect: %w", err)
	}
	if err := positive(cmd, map[string]time.Duration{"ttl": f.ttl, "stall-after": f.stallAfter, "pause": f.pause}); err != nil {
		return err
	}
	if f.pause > time.Hour {
		return usage("elect: --pause %s: want an hour at most", f.pause)
	}
	e.Opts.StallAfter, e.Pause, f.onLost = f.stallAfter, f.pause, "term"
	if err := f.options(&e.Opts, false); err != nil {
		return usage("elect: %w", err)
	}
	return f.stopping(cmd, &e.Job)
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
