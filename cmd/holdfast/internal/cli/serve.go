package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/notify"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/serve"
)

// serveFlags are the flags of serve as they were given.
type serveFlags struct {
	listen    []string
	insecure  bool
	drain     time.Duration
	logFormat string
	logLevel  string
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Answer over HTTP for the locks of the store",
		Long: `Serve answers over HTTP for the locks of the store: to programs in any language, and
to holdfast itself with --store http://HOST:PORT. Any number of servers may be open on
one store, and none has anything that another lacks.

It listens on 127.0.0.1:7420, or where --listen says, or at the sockets that systemd
passes on, and prints the URL of each on standard output. A port 0 becomes one that is
free. Whoever reaches a loopback address or a socket may do everything. An address that
other hosts can reach is refused unless --insecure says that everybody may.

/healthz says that the process lives, and /readyz that the store answers and the server
does not drain.

TERM and INT drain: new work is refused with 503, streams are told to move, and what was
begun is answered, for the time of --drain at most. No lock is given back: other servers
go on with them. A second signal ends it at once.

The exit status is 0 after a signal, or
  64  wrong arguments                   77   the store refuses our rights
  69  the store cannot be reached, or   78   other hosts can reach the address,
      the address cannot be had              and everybody may do everything
  128 + n if a second signal n ended it`,
		Example: `  holdfast serve
  holdfast serve --listen unix:///run/holdfast.sock --store redis://redis.internal:6379`,
		Args: words(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.listen, "listen", nil, "`ADDRESS`: host:port or unix:///path; may be repeated (default "+serve.DefaultAddress+")")
	flags.BoolVar(&f.insecure, "insecure", false, "let everybody who reaches the server do everything")
	durationVar(flags, &f.drain, "drain", 30*time.Second, "how long requests may take to their end after TERM")
	flags.StringVar(&f.logFormat, "log-format", "", "`FORMAT` of the log on standard error: text or json (default: text on a terminal, else json)")
	flags.StringVar(&f.logLevel, "log-level", "info", "`LEVEL` of what is logged: debug, info, warn or error")
	return cmd
}

func (a *app) serve(ctx context.Context, f *serveFlags) error {
	logger, err := a.serverLog(f)
	if err != nil {
		return err
	}
	if f.drain <= 0 || f.drain > time.Hour {
		return usage("serve: --drain %s: want more than 0, and an hour at most", f.drain)
	}
	manager, err := notify.Find(a.asked.Getenv)
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("serve: %w", err))
	}
	inherited, addresses, err := a.sockets(f)
	if err != nil {
		return err
	}
	listeners := inherited
	defer func() { _ = serve.CloseAll(listeners) }() // those that are not served
	engine, choice, err := a.opener(ctx)
	if err != nil {
		return err
	}
	defer engine.Close()
	s, err := serve.New(serve.Options{Engine: engine, Log: logger, Drain: f.drain})
	if err != nil {
		return exit.FromStore(err)
	}
	for _, address := range addresses {
		l, err := address.Listen(ctx)
		if err != nil {
			s.Shutdown(ctx)
			return exit.With(exit.Unavailable, fmt.Errorf("serve: --listen %s: %w", address, err))
		}
		listeners = append(listeners, l)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	for _, l := range listeners {
		s.Serve(l)
		logger.Info("listening", "url", serve.URL(l), "store", choice.Public())
		if err := a.answer(nil, serve.URL(l)+"\n"); err != nil {
			logger.Warn("standard output takes nothing", "error", err)
		}
	}
	quiet := manager.Ping(notify.Watchdog(a.asked.Getenv))
	defer quiet()
	manager.Tell("READY=1", "STATUS=serving "+choice.Public())
	return await(ctx, s, manager, logger, signals)
}

// await waits for the end of s.
func await(ctx context.Context, s *serve.Service, manager *notify.Manager, logger *slog.Logger, signals <-chan os.Signal) error {
	var err error
	for waiting := true; waiting; {
		select {
		case got := <-signals:
			waiting = got == syscall.SIGHUP
			logger.Info("signal", "signal", got.String())
		case err = <-s.Failed():
			err = &exit.Error{Status: exit.Unavailable, Err: fmt.Errorf("serve: %w", err)}
			waiting = false
		}
	}
	manager.Tell("STOPPING=1", "STATUS=draining")
	over := make(chan struct{})
	go func() { // ends after --drain, or with the program
		defer close(over)
		s.Shutdown(ctx)
	}()
	for {
		select {
		case got := <-signals:
			if got != syscall.SIGHUP {
				return &exit.Error{Status: exit.Signal(int(got.(syscall.Signal)))}
			}
		case <-over:
			return err
		}
	}
}

// sockets returns those of systemd, and where else to listen. Whoever can reach them may
// do everything, so that has to be this host, or what the user wants.
func (a *app) sockets(f *serveFlags) (inherited []net.Listener, addresses []serve.Address, err error) {
	if inherited, err = serve.Inherited(a.asked.Getenv); err != nil {
		return nil, nil, exit.With(exit.Config, fmt.Errorf("serve: %w", err))
	}
	texts := f.listen
	if len(inherited)+len(texts) == 0 {
		texts = []string{serve.DefaultAddress}
	}
	for _, text := range texts {
		address, err := serve.ParseAddress(text)
		if err != nil {
			return nil, nil, usage("serve: --listen %w", err)
		}
		if address.Public() && !f.insecure {
			return nil, nil, everybodyMay(address)
		}
		addresses = append(addresses, address)
	}
	for _, l := range inherited {
		if serve.IsPublic(l.Addr()) && !f.insecure {
			return nil, nil, everybodyMay(l.Addr())
		}
	}
	return inherited, addresses, nil
}

// everybodyMay says why an address is not listened on.
func everybodyMay(address fmt.Stringer) error {
	return exit.With(exit.Config, fmt.Errorf("serve: other hosts can reach %s, and whoever reaches it may do everything: "+
		"listen on 127.0.0.1, or say --insecure if that is what you want", address))
}

// serverLog returns where the server writes what happens: a line at once, which waits
// for its reader, so that none is lost.
func (a *app) serverLog(f *serveFlags) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil || strings.ContainsAny(f.logLevel, "+-") {
		return nil, usage("serve: --log-level %q: want debug, info, warn or error", f.logLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	format := f.logFormat
	if format == "" && a.screen != nil {
		format = "text"
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(a.stderr, options)), nil
	case "json", "":
		return slog.New(slog.NewJSONHandler(a.stderr, options)), nil
	}
	return nil, usage("serve: --log-format %q: want text or json", f.logFormat)
}
