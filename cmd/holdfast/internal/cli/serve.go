package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/serve"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/stores"
)

// serveFlags are the flags of serve as they were given.
type serveFlags struct {
	listen          []string
	callers         string
	insecure        bool
	hosts           []string
	limits          []string
	tlsCert, tlsKey string
	secretFile      string
	drain           time.Duration
	metrics         string // address
	log             string
	demo            bool
	demoSeed        uint64
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve the locks of the store over HTTP",
		Long: `Serve offers the locks of the store over HTTP, to programs in any language, and to holdfast
with --store http://HOST:PORT. Any number of servers may run on one store.

It listens at --listen, or on the sockets of a systemd socket unit, and prints each URL. Port 0
picks a free port. Clients of a loopback address or a socket may do everything, unless there
are --callers. An address that other hosts can reach needs --callers or --insecure.

The page at / shows holders, queues and causes of waiting. /healthz succeeds while the process
runs, and /readyz while the store answers and the server does not drain. /metrics is for
Prometheus.

TERM and INT drain: new requests get 503, streams end with "moved", and the server answers
requests in progress, within --drain. It releases no lock: clients continue at other servers. A
second signal ends the server at once. HUP, and a change of their files, reload the certificate
and the callers.

The exit status is 0 after a signal, 69 if the address is in use, 78 if the address or a file
is refused. Others: holdfast --help.`,
		Example: `  holdfast serve --demo
  holdfast serve --listen unix:///run/holdfast.sock --store redis://redis.internal:6379
  holdfast serve --listen :7420 --callers /etc/holdfast/callers.json --tls-cert cert.pem --tls-key key.pem`,
		Args: words(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.demo = cmd.Flags().Changed("demo")
			return a.serve(cmd.Context(), &f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.listen, "listen", nil, "`ADDRESS`: host:port or unix:///path; may be repeated (default "+serve.DefaultAddress+")")
	flags.Var((*nonEmpty)(&f.callers), "callers", "`FILE` with the callers and their rights: see holdfast serve add-caller --help")
	flags.BoolVar(&f.insecure, "insecure", false, "allow everything to every client that reaches the server")
	flags.Var((*nonEmpty)(&f.tlsCert), "tls-cert", "`FILE` with the certificate and its chain, in PEM")
	flags.Var((*nonEmpty)(&f.tlsKey), "tls-key", "`FILE` with the key of the certificate")
	flags.StringArrayVar(&f.hosts, "host", nil, "accept this Host `NAME`, besides localhost, when there is no --callers; may be repeated")
	flags.Var((*nonEmpty)(&f.secretFile), "secret-file", "`FILE` with the key that signs lease IDs; the same on every server of a store (default: kept in the store)")
	flags.StringArrayVar(&f.limits, "limit", nil, "`NAME=N` per caller: waiters (default 10000), streams (5000), leases (100000), or kept, bytes of results and tokens (64 MiB); may be repeated")
	durationVar(flags, &f.drain, "drain", 30*time.Second, limits{1, time.Hour}, "how long requests in progress may take after TERM")
	flags.Var((*nonEmpty)(&f.metrics), "metrics-listen", "serve /metrics, without authentication, on `ADDRESS` only; on a loopback one /debug/pprof/ too")
	flags.StringVar(&f.log, "log", "", "`WORDS`, with commas: text or json (default: text on a terminal); debug, info, warn or error; requests, to log each")
	flags.Uint64Var(&f.demoSeed, "demo", 1, "serve an in-memory demo with simulated clients; =`SEED` changes their names")
	flags.Lookup("demo").NoOptDefVal, flags.Lookup("demo").DefValue = "1", "0"
	cmd.AddCommand(a.addCallerCommand())
	return cmd
}

// checkDemo refuses flags that contradict --demo.
func (a *app) checkDemo(f *serveFlags) error {
	switch {
	case f.demo && (a.asked.Store != "" || a.asked.File != ""):
		return usage("serve: --demo has its own store, in memory: leave out --store and --store-file")
	case f.demo && f.callers != "":
		return usage("serve: --demo is open to every client: leave out --callers")
	}
	return nil
}

// served opens the store to serve, and returns its name.
func (a *app) served(ctx context.Context, f *serveFlags) (driver.Engine, string, error) {
	if f.demo {
		engine, err := stores.Open(ctx, "memory:?history=1")
		if err != nil {
			return nil, "", err
		}
		return demo.WithPast(engine, f.demoSeed), "a demo, in memory", nil
	}
	engine, err := a.session().open(ctx)
	return engine, a.choice.Public(), err
}

func (a *app) addCallerCommand() *cobra.Command {
	var prefixes, rights []string
	cmd := &cobra.Command{
		Use:   "add-caller FILE NAME --prefix PREFIX --right RIGHT",
		Short: "Create a token for a caller of the server",
		Long: `Add-caller creates a token, adds the caller NAME to FILE, which is for serve --callers, and
prints the token, once: the file stores only its SHA-256. Running servers accept the caller
within a second.

The caller may use locks whose names begin with one of its prefixes; '' allows every name. Rights
are
  acquire  take, renew and release locks   once     do-once work
  read     look at locks and events        onetime  one-time tokens
  break    take locks away from others     admin    see others' lease IDs

To replace a token, add the same NAME again, and remove the old entry from FILE later.

The exit status is 0, 78 if the file cannot be used. Others: holdfast --help. After 74 the
token was not printed: remove its entry.`,
		Example: `  holdfast serve add-caller /etc/holdfast/callers.json shop --prefix shop/ --right acquire --right read
  holdfast serve add-caller callers.json ops --prefix '' --right read --right break >ops.token`,
		Args: words(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.addCaller(args[0], caller.Caller{Name: args[1], Prefixes: prefixes}, rights)
		},
	}
	cmd.Flags().StringArrayVar(&prefixes, "prefix", nil, "allow names that begin with `PREFIX`; may be repeated")
	cmd.Flags().StringArrayVar(&rights, "right", nil, "`RIGHT` of the caller; may be repeated")
	return cmd
}

func (a *app) addCaller(file string, c caller.Caller, rights []string) (err error) {
	if err := driver.CheckName(c.Name); err != nil {
		return usage("serve add-caller: %w", err)
	}
	if len(c.Prefixes) == 0 {
		return usage("serve add-caller: no --prefix: want the names that the caller may use; --prefix '' is every name")
	}
	if c.Rights, err = caller.ParseRights(rights); err != nil {
		return usage("serve add-caller: --right: %w", err)
	}
	if c.Rights == 0 {
		return usage("serve add-caller: no --right: want what the caller may do")
	}
	token, err := caller.Add(file, c)
	if err != nil {
		return exit.Errorf(exit.Config, "serve add-caller: %w", err)
	}
	return a.answer(nil, token+"\n")
}
