//go:build unix

package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/control"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/notify"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/waitline"
	"github.com/holdfast-locks/holdfast/driver"
)

// electFlags are the flags of elect as they were given.
type electFlags struct {
	jobFlags
	watchdog time.Duration
	pause    time.Duration
}

func (a *app) electCommand() *cobra.Command {
	var f electFlags
	cmd := &cobra.Command{
		Use:   "elect [flags] NAME [--] COMMAND [ARGUMENT...] | elect NAME [flags] -- COMMAND",
		Short: "Run a command on one of several hosts",
		Long: `Elect runs COMMAND while this host leads, which is while it has the lock NAME, and
waits while another one does. Start it on each host.

COMMAND is meant to run on. When it ends, whatever its status, the next host has its
turn, and this one stands for election again after a --pause of 1 s, then 2 s, and so
on up to a minute. If the lead is lost, COMMAND and all that descends from it are stopped
before another host can lead, and this one stands again.

TERM and INT end elect: COMMAND gets the signal, and when nothing of it is left the
next host leads at once. HUP is passed on, to reload COMMAND; from a terminal it ends
elect. Under systemd elect tells whether it waits or leads. With --watchdog, or a
WatchdogSec= of its unit, COMMAND must send WATCHDOG=1 as sd_notify(3) says, or it
loses the lead.

The exit status is that of COMMAND when a signal has ended elect, or 128 + n if signal n
came while it did not lead, or
  64  wrong arguments                  78   the store cannot do this
  69  the store was not there at first 79   a process of the job could not be stopped
  77  the store refuses our rights     126, 127  COMMAND cannot be executed, or does
                                            not exist`,
		Example: `  holdfast elect scheduler -- ./scheduler
  holdfast elect --ttl 10s --watchdog 5s --store redis://redis.internal:6379 ingest -- ./ingest`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.elect(cmd, &f, args) },
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows NAME is the command's, unless a -- says otherwise
	flags.SortFlags = false
	flags.StringArrayVarP(&f.shell, "command", "c", nil, "run `STRING` with sh -c")
	durationVar(flags, &f.ttl, "ttl", 30*time.Second, "lease TTL: when this host dies, another leads after this long")
	durationVar(flags, &f.watchdog, "watchdog", 0, "COMMAND must send WATCHDOG=1 at least so often (default: $WATCHDOG_USEC)")
	durationVar(flags, &f.pause, "pause", time.Second, "before this host stands again when COMMAND has ended; doubled each time, up to a minute")
	durationVar(flags, &f.killAfter, "kill-after", 0, "time between TERM and KILL (default: a quarter of the TTL, 5s at most)")
	flags.StringVar(&f.reason, "reason", "", "`TEXT` shown to others while this host leads")
	flags.StringArrayVar(&f.labels, "label", nil, "`KEY=VALUE` shown to others; may be repeated")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no messages about the election")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "tell what happens to the lock")
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
	e.NewLine = func() *waitline.Line { return a.waitLine(f.quiet, f.verbose) }
	return a.work(cmd.Context(), &f.jobFlags, &e.Job, func() error {
		e.StoreEnv = append(e.StoreEnv, notify.Environment(e.Socket, e.Opts.Progress)...)
		return runner.Elect(cmd.Context(), e)
	})
}

// election checks the arguments. A wrong one is a usage error, and nothing has happened
// yet.
func (f *electFlags) election(cmd *cobra.Command, e *runner.Election, command []string) (err error) {
	if e.Args, err = f.command(cmd, command); err != nil {
		return err
	}
	if err := driver.CheckName(e.Names[0]); err != nil {
		return usage("elect: %w", err)
	}
	if err := positive(cmd, map[string]time.Duration{"ttl": f.ttl, "watchdog": f.watchdog, "pause": f.pause}); err != nil {
		return err
	}
	if f.pause > time.Hour {
		return usage("elect: --pause %s: want an hour at most", f.pause)
	}
	e.Opts.Progress, e.Pause, f.onLost = f.watchdog, f.pause, "term"
	if err := f.options(&e.Opts, false); err != nil {
		return usage("elect: %w", err)
	}
	return f.stopping(cmd, &e.Job)
}

// manager finds the service manager that has started this program, and makes a socket
// for the command if there is one, or a watchdog. stop ends both.
func (a *app) manager(e *runner.Election) (stop func(), err error) {
	ours := notify.Watchdog(a.asked.Getenv)
	if e.Manager, err = notify.Find(a.asked.Getenv); err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("elect: %w", err))
	}
	if e.Opts.Progress == 0 {
		e.Opts.Progress = ours
	}
	notify.Forget()
	if e.Manager != nil || e.Opts.Progress > 0 {
		path, err := control.NewPath(a.asked.Getenv)
		if err == nil {
			e.Socket, err = notify.Listen(path)
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
