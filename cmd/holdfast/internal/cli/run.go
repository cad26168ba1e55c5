//go:build unix

package cli

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/notify"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

func (a *app) runCommand() *cobra.Command {
	var f jobFlags
	cmd := &cobra.Command{
		Use:   "run [flags] NAME [--] COMMAND [ARGUMENT...]",
		Short: "Run a command under a lock",
		Long: `Run waits for the lock NAME, runs COMMAND, and releases the lock. If the lease cannot be
renewed, COMMAND and all its descendants are stopped before another client can get the lock.
After a break, or a deletion in the store, they are stopped within 5 s, or a third of the TTL
if that is shorter.

Flags may follow NAME if a -- ends them: run NAME -w 3 -- COMMAND. With -N, names are flags:
run -N A -N B -- COMMAND takes both locks or none, and stops COMMAND if it loses one.
The flags of flock(1) work as they do there; -F, -u and file descriptors are refused.

The exit status is COMMAND's own, 128 + n if signal n ended it, or
   75  another client has the lock      126  COMMAND cannot be executed
   79  the lock was lost                127  COMMAND does not exist
  124  --max-hold passed
Others: holdfast --help. After 79 and 124, COMMAND has been stopped.`,
		Example: `  holdfast run nightly -- ./report.sh
  holdfast run -n backup -c 'pg_dump app | gzip > app.sql.gz'
  holdfast run -w 30s --store redis://redis.internal:6379 invoices -- ./invoice
  holdfast run -N orders -N stock -w 1m -- ./move.sh
  holdfast run --slots 3 encoders -- ./encode.sh`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(&f, args) },
	}
	cmd.Flags().SetNormalizeFunc(ofFlock)
	cmd.Flags().SetInterspersed(false) // arguments after NAME belong to the command, unless a -- follows
	f.define(cmd, "name no-wait wait exclusive shared slots permits command ttl reason quiet verbose"+flockFlags+
		" | busy-status min-hold max-hold stall-after no-keep-alive on-lost kill-after wait-children status-fd label")
	f.reportFlagErrors()
	return cmd
}

func (a *app) run(f *jobFlags, args []string) error {
	command, err := f.split(args)
	if f.version { // even if other arguments are missing
		return a.printVersion()
	}
	return f.reported(func(status *runner.Status) error {
		if err = cmp.Or(f.refused(), err); err != nil {
			return err
		}
		if len(f.shell)+len(command) == 0 && len(f.names) == 1 && isNumber(f.names[0]) {
			return usage("run: no command given; holdfast takes no file descriptors: %s", inScripts)
		}
		job, err := a.commandJob(f, command)
		if err != nil {
			return err
		}
		job.Status = status
		job.Start = supervise.Prepare(nil) // the warden starts while the store is opened and the lock acquired
		defer job.Start.Close()
		ctx := f.cmd.Context()
		return a.session().work(ctx, f, &job, func() error { return runner.Run(ctx, job) })
	})
}

// split separates the name from the command of run or elect. Flags may follow the name if a
// "--" ends them; otherwise everything after the name belongs to the command. With -N there is
// no NAME argument, and the command must follow a "--", so that a name is not run as a command.
func (f *jobFlags) split(args []string) (command []string, err error) {
	switch named := len(f.names) > 0; {
	case named && len(args) > 0 && f.cmd.ArgsLenAtDash() != 0:
		return nil, notNamed(args[0])
	case named:
		return args, nil
	case len(args) == 0:
		return nil, usage("%s: no lock name given: want holdfast %s NAME -- COMMAND", f.cmd.Name(), f.cmd.Name())
	}
	name, command := args[0], args[1:]
	if len(command) > 0 && len(command[0]) > 1 && strings.HasPrefix(command[0], "-") {
		command, err = flagsAfterName(f.cmd, command)
	}
	if err == nil && len(f.names) > 0 {
		err = notNamed(name)
	}
	f.names = append(f.names, name)
	return command, err
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

func (a *app) electCommand() *cobra.Command {
	var f jobFlags
	cmd := &cobra.Command{
		Use:   "elect [flags] NAME [--] COMMAND [ARGUMENT...] | elect NAME [flags] -- COMMAND",
		Short: "Run a command on one of several hosts",
		Long: `Elect runs COMMAND while this host leads, that is, while it holds the lock NAME, and waits
while another host leads. Start it on each host.

When COMMAND ends, with any status, the next host leads, and this one rejoins the election
after the --pause. If the lead is lost, COMMAND and all its descendants are stopped before
another host can lead.

TERM and INT end elect: COMMAND gets the signal, and the next host leads when all processes
have ended. Elect passes HUP on to COMMAND; a HUP from a closed terminal ends elect. Under
systemd elect reports whether it waits or leads. With --stall-after, or WatchdogSec= in its
unit, COMMAND must send WATCHDOG=1 as in sd_notify(3), or it loses the lead.

If a signal ends elect, the exit status is COMMAND's, or 128 + n for signal n if COMMAND did
not run here. Otherwise it is
   69  the store did not answer at the start   126  COMMAND cannot be executed
   79  a process could not be stopped          127  COMMAND does not exist
Others: holdfast --help.`,
		Example: `  holdfast elect scheduler -- ./scheduler
  holdfast elect --ttl 10s --stall-after 5s --store redis://redis.internal:6379 ingest -- ./ingest`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.elect(&f, args) },
	}
	cmd.Flags().SetInterspersed(false) // arguments after NAME belong to the command, unless a -- follows
	f.define(cmd, "command ttl pause reason quiet verbose | stall-after kill-after label")
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
		e.StoreEnv = append(e.StoreEnv, notify.Environment(e.Socket, e.Opts.StallAfter)...)
		return runner.Elect(ctx, e)
	})
}

// manager finds the service manager that has started this program. If there is one, or a
// watchdog, manager makes a socket for the command. stop ends both.
func (a *app) manager(e *runner.Election) (stop func(), err error) {
	ours := notify.Watchdog(a.getenv)
	if e.Manager, err = notify.Find(a.getenv); err != nil {
		return nil, exit.Errorf(exit.Config, "elect: %w", err)
	}
	if e.Opts.StallAfter == 0 {
		e.Opts.StallAfter = ours
	}
	notify.Forget()
	if e.Manager != nil || e.Opts.StallAfter > 0 {
		path, err := keeper.NewPath(a.getenv)
		if err == nil {
			e.Socket, err = notify.Listen(path)
		}
		if err != nil {
			return nil, exit.Errorf(exit.Config, "elect: %w", err)
		}
	}
	quiet := e.Manager.Ping(ours)
	return func() {
		quiet()
		e.Socket.Close()
	}, nil
}

// hasTerminal reports whether this process has a terminal. Closing a terminal sends HUP.
func hasTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err == nil
}
