// Package cli is the command line of holdfast: flags, commands, and what they
// print.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
)

// An app is one run of the program: its arguments and environment, the flags that all commands
// have, and what is known about the store that they name.
type app struct {
	args     []string // of the program
	getenv   func(string) string
	stdout   io.Writer
	stderr   io.Writer      // for a server's log; messages writes everything else
	messages *show.Writer   // to standard error
	screen   *show.Terminal // on standard error, or nil

	asked    store.Asked // --store, and where to look without it
	json     bool        // --json
	answered bool        // something was written to stdout

	verb, subject string // the command and its object, for messages

	chosen    bool // choice and choiceErr are what asked resolves to
	choice    store.Choice
	newStore  bool // this run has made the store
	choiceErr error
}

// Main runs the program and returns its exit status. prefix is put before the system's own
// paths; it is empty except in tests.
func Main(args []string, getenv func(string) string, prefix string, stdout, stderr io.Writer) int {
	if status, ok := helper(args); ok {
		return status
	}
	a := &app{args: args, getenv: getenv, stdout: stdout, stderr: stderr, asked: store.Asked{Getenv: getenv, Root: prefix}}
	a.openMessages()
	root := a.rootCommand()
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		a.setUpCompletion(root)
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	e, ok := errors.AsType[*exit.Error](err)
	switch {
	case err == nil:
		e = &exit.Error{}
	case !ok: // cobra's own: unknown commands and flags
		e = &exit.Error{Status: exit.Usage, Err: notUnderstood(cmd, err)}
	}
	a.report(e, cmd)
	a.messages.Close(e.EndBy)
	return e.Status
}

// openMessages opens the writer to standard error. If that is a terminal, the writer draws a
// waiting line below the messages.
func (a *app) openMessages() {
	var screen show.Screen // nil if there is none
	if f, ok := a.stderr.(*os.File); ok {
		if a.screen = show.TerminalOf(f, a.getenv("TERM")); a.screen != nil {
			screen = a.screen
		}
	}
	a.messages = show.NewWriter(a.stderr, screen)
}

// say prints a message of one line on standard error. It may have texts of other clients.
func (a *app) say(format string, arguments ...any) {
	text := strings.TrimPrefix(fmt.Sprintf(format, arguments...), "holdfast: ")
	a.messages.Put("holdfast: " + show.Plain(text) + "\n")
}

func (a *app) rootCommand() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Distributed locks for commands",
		Long: `Holdfast runs commands under locks that processes on one host or many share in a store.

The store is the first of these that is named:
  --store URL, or --store-file FILE with the URL
  $HOLDFAST_STORE, or $HOLDFAST_STORE_FILE
  holdfast.conf in $XDG_CONFIG_HOME (~/.config), with lines such as store = URL
  /etc/holdfast.conf
  the system's file, /var/lib/holdfast/locks.db, if it exists
  your own file
If it cannot be used, the command fails.

URLs of stores:
  sqlite:///path/file.db    the processes of this host
  redis://host:port         Redis or Valkey; rediss:// for TLS
  redis+sentinel://a,b,c/name, redis+cluster://a,b,c
                            the same with Sentinel, or a Redis Cluster
  redis+unix:///path/redis.sock
                            one server of this host, by its socket
  quorum+redis://a,b,c      a majority of independent servers
  postgres://host/database  a schema of a PostgreSQL database
  valkey, valkeys           the same as redis and rediss
  memory:                   this process only, for trials
  http://host:port          a holdfast server; https:// for TLS

Exit statuses that mean the same for all commands:
  64  wrong arguments                        75  another client has the lock
  69  the store cannot be reached            77  the store denies access
  74  standard output cannot be written      79  the lease is lost
  78  the store cannot do this, does not exist, or NAME is a lock of another kind
  128 + n, if signal n ended holdfast`,
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
	// cobra prints versions with a template. Templates make the linker keep every method of
	// every type: the program would be almost twice as large.
	root.Flags().BoolVarP(&version, "version", "V", false, "print the version")
	root.PersistentFlags().Var((*nonEmpty)(&a.asked.Store), "store", "`URL` of the store (default: see holdfast --help)")
	root.PersistentFlags().Var((*nonEmpty)(&a.asked.File), "store-file", "read the store's URL from `FILE`, which keeps it out of ps")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(help)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(a.unixCommands()...)
	root.AddCommand(a.onceCommand(), a.tokenCommand(), a.checkCommand(), a.showCommand(), a.historyCommand(), a.listCommand(), a.breakCommand(),
		a.versionCommand(), a.doctorCommand(), a.completionCommand(), a.benchCommand(), a.waitCommand(), a.watchCommand(), a.serveCommand())
	group(root)
	return root
}

// A nonEmpty is a flag that must not be empty: with an unset variable in a script, the
// command would use another store, or serve without callers or TLS.
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

// usage returns an error for wrong arguments. It prints durations without what is 0.
func usage(format string, arguments ...any) error {
	for i, argument := range arguments {
		if d, ok := argument.(time.Duration); ok {
			arguments[i] = short(d)
		}
	}
	return exit.Errorf(exit.Usage, format, arguments...)
}

// flagError describes a wrong argument of a flag.
func flagError(cmd *cobra.Command, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return exit.With(exit.Usage, notUnderstood(cmd, err))
	}
	flag, cause := "--"+invalid.GetFlag().Name, invalid.Unwrap()
	if letter := invalid.GetFlag().Shorthand; letter != "" {
		flag = "-" + letter
	}
	if number, ok := errors.AsType[*strconv.NumError](err); ok {
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
