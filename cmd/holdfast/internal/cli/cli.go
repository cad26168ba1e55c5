// Package cli is the command line of holdfast: flags, commands, and what they
// print.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/linewriter"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/terminal"
	"github.com/holdfast-locks/holdfast/driver"
)

// closeTimeout bounds how long the program waits at its end for requests that
// have to be cancelled.
const closeTimeout = 3 * time.Second

// awayTimeout is closeTimeout while the store does not answer.
const awayTimeout = 100 * time.Millisecond

// An opener opens the store that the user wants.
type opener func(context.Context) (driver.Engine, store.Choice, error)

// An app is one run of the program.
type app struct {
	args     []string    // of the program
	asked    store.Asked // --store, and where to look without it
	stdout   io.Writer
	stderr   io.Writer                         // for a server's log; all else is written by messages
	messages *linewriter.Writer                // to standard error
	screen   *terminal.Terminal                // on standard error, or nil
	wrap     func(driver.Engine) driver.Engine // what a command has done to its engine; may be nil
	holder   holdfast.Holder                   // what others see of whoever acquires, besides host, user and process
	json     bool                              // --json
	quiet    bool                              // --quiet of a command that waits
	wait     time.Duration                     // its --wait, which bounds the wait for the store too; 0 if it has none
	opener   opener                            // opens the store; see open
	onAway   func(time.Time, error)            // is told that the store is not there, and when that wait began; may be nil
	away     atomic.Bool                       // the store does not answer, and the user knows

	verb, subject string // what is done to what, for messages
	answered      bool   // something was written to stdout
	endless       string // the name of which the user knows that what is in its way has no end

	chosen    bool // choice and choiceErr are what asked resolves to
	choice    store.Choice
	newStore  bool // it was made by this run
	choiceErr error
}

// Main runs the program and returns its exit status. What stands in front of the
// system's own paths, prefix, is empty but in tests.
func Main(args []string, getenv func(string) string, prefix string, stdout, stderr io.Writer) int {
	if status, ok := helper(args); ok {
		return status
	}
	a := &app{asked: store.Asked{Getenv: getenv, Root: prefix}, stdout: stdout, stderr: stderr}
	a.args = args
	a.speakTo(stderr, getenv("TERM"))
	a.opener = a.open
	root := a.rootCommand()
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		a.setUpCompletion(root)
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	var e *exit.Error
	switch {
	case err == nil:
		e = &exit.Error{}
	case !errors.As(err, &e): // cobra's own: unknown commands and flags
		e = &exit.Error{Status: exit.Usage, Err: notUnderstood(cmd, err)}
	}
	a.report(e, cmd)
	a.messages.Close(e.EndBy)
	return e.Status
}

// say prints a message for the user.
func (a *app) say(format string, arguments ...any) {
	text := strings.TrimPrefix(fmt.Sprintf(format, arguments...), "holdfast: ")
	a.messages.Put("holdfast: " + text + "\n")
}

func (a *app) rootCommand() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Distributed locks for commands",
		Long: `Holdfast runs commands under locks that several processes, on one host or on
many, share through a store.

The store is the first of these that is named:
  --store URL, or --store-file FILE that has the URL in it
  $HOLDFAST_STORE, or $HOLDFAST_STORE_FILE
  holdfast.conf in $XDG_CONFIG_HOME (~/.config), with lines such as store = URL
  /etc/holdfast.conf
  the system's file, /var/lib/holdfast/locks.db, if it is there
  your own file
If it cannot be used the command fails: it does not try the next.

URLs of stores:
  sqlite:///path/file.db    the processes of this host
  redis://host:port         Redis or Valkey; rediss:// for TLS
  redis+sentinel://…/name, redis+cluster://…
                            the same with Sentinel, or a Redis Cluster
  redis+unix:///path/redis.sock
                            one server of this host, by its socket
  quorum+redis://a,b,c      a majority of servers that know nothing of each other
  valkey, valkeys           may stand for redis and rediss everywhere
  memory:                   this process only, for trying things out`,
		Example: `  holdfast run deploy -- ./deploy.sh
  holdfast show deploy`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		PersistentPreRun: func(cmd *cobra.Command, args []string) {
			a.verb, a.subject = verbOf(cmd), subjectOf(args)
		},
		RunE: func(root *cobra.Command, args []string) error {
			if version && len(args) == 0 {
				return a.printVersion()
			}
			return a.noCommand(root, args)
		},
	}
	// cobra prints versions by a template. With the templates, the linker has to
	// keep every method of every type: the program would be almost twice as large.
	root.Flags().BoolVarP(&version, "version", "V", false, "print the version")
	root.PersistentFlags().Var((*nonEmpty)(&a.asked.Store), "store", "`URL` of the store; without it and --store-file: see holdfast --help")
	root.PersistentFlags().Var((*nonEmpty)(&a.asked.File), "store-file", "`FILE` that has the URL of the store, which no ps shows then")
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		a.runCommand(),
		a.onceCommand(),
		a.electCommand(),
		a.tokenCommand(),
		a.checkCommand(),
		a.acquireCommand(),
		a.extendCommand(),
		a.progressCommand(),
		a.releaseCommand(),
		a.holdCommand(),
		a.showCommand(),
		a.historyCommand(),
		a.listCommand(),
		a.breakCommand(),
		a.versionCommand(),
		a.doctorCommand(),
		a.completionCommand(),
		a.benchCommand(),
		a.waitCommand(),
		a.watchCommand(),
		a.serveCommand(),
	)
	group(root)
	return root
}

// A nonEmpty is the argument of a flag that must not be empty: an unset variable in
// a script would have another store used.
type nonEmpty string

func (n *nonEmpty) String() string { return string(*n) }
func (n *nonEmpty) Type() string   { return "string" }

func (n *nonEmpty) Set(s string) error {
	if s == "" {
		return errors.New("it is empty")
	}
	*n = nonEmpty(s)
	return nil
}

// usage returns an error for wrong arguments.
func usage(format string, arguments ...any) error {
	return exit.With(exit.Usage, fmt.Errorf(format, arguments...))
}

// flagError says in our words what is wrong with the argument of a flag.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return exit.With(exit.Usage, notUnderstood(cmd, err))
	}
	flag, cause := "--"+invalid.GetFlag().Name, invalid.Unwrap()
	if letter := invalid.GetFlag().Shorthand; letter != "" {
		flag = "-" + letter
	}
	if number := (*strconv.NumError)(nil); errors.As(err, &number) {
		switch {
		case number.Func == "ParseBool":
			cause = errors.New("want true or false, or no argument")
		case errors.Is(err, strconv.ErrRange):
			cause = errors.New("it is too large")
		default:
			cause = errors.New("want a whole number")
		}
	}
	return usage("%s: %s %q: %w", verbOf(cmd), flag, invalid.GetValue(), cause)
}

// ask opens the store, calls f and closes everything. An error of f that has no
// status gets that of the client's errors.
func (a *app) ask(cmd *cobra.Command, f func(context.Context, *holdfast.Client) error) error {
	return a.withClient(cmd.Context(), nil, func(c *holdfast.Client, _ store.Choice) error {
		err := f(cmd.Context(), c)
		if e := (*exit.Error)(nil); errors.As(err, &e) {
			return err
		}
		return exit.FromStore(err)
	})
}

// withClient is ask for those who observe the client, or want to know which store it is.
// The error of f has a status.
func (a *app) withClient(ctx context.Context, observer holdfast.Observer, f func(c *holdfast.Client, choice store.Choice) error) error {
	engine, choice, err := a.opener(ctx)
	if err != nil {
		return err
	}
	if a.wrap != nil {
		engine = a.wrap(engine)
	}
	quiet := slog.New(slog.DiscardHandler) // what the user is to know the command says itself
	client, err := holdfast.New(engine, &holdfast.Options{Observer: observer, Logger: quiet, Holder: a.holder})
	if err != nil {
		engine.Close()
		return exit.FromStore(err)
	}
	err = f(client, choice)
	limit := closeLimit(err)
	if a.away.Load() { // nothing can be cancelled now
		limit = min(limit, awayTimeout)
	}
	closeWithin(context.WithoutCancel(ctx), limit, client, engine)
	return err
}

// closeWithin closes a client and its engine. After the limit it leaves that to
// the end of the program; what is left in the store ends with its TTL.
func closeWithin(ctx context.Context, limit time.Duration, client *holdfast.Client, engine driver.Engine) {
	if limit <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	closed := make(chan struct{})
	go func() { // ends soon after ctx, or with the program
		defer close(closed)
		_ = client.Close(ctx)
		engine.Close()
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// closeLimit returns how long closing the client may take after err. With 0 or
// less it must not be closed: that would give back what it holds, or there is no
// time.
func closeLimit(err error) time.Duration {
	var e *exit.Error
	switch {
	case !errors.As(err, &e):
	case e.KeepLock:
		return 0
	case !e.EndBy.IsZero():
		return time.Until(e.EndBy)
	case e.Status == exit.Lost:
		return awayTimeout
	case e.Status > exit.Signal(0): // whoever sent it is waiting
		return time.Second
	}
	return closeTimeout
}
