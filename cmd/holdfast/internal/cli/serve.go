package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/serve"
	"github.com/holdfast-locks/holdfast/httplock/server"
)

// serveFlags are the flags of serve as they were given.
type serveFlags struct {
	listen            []string
	callers           string
	insecure          bool
	hosts             []string
	limits            server.Limits
	tlsCert, tlsKey   string
	secretFile        string
	drain             time.Duration
	metrics, profiles string // addresses
	logFormat         string
	logLevel          string
	accessLog         bool
	demo, seeded      bool
	demoSeed          uint64
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
free. Whoever reaches a loopback address or a socket may do everything, unless --callers
says who may do what. An address that other hosts can reach is refused without --callers,
unless --insecure says that everybody may do everything there.

The page at / shows who holds what, who waits for it, and why. --demo shows it with a
fleet that is made up, in memory: no store is opened, and all of it is gone at the end.

/healthz says that the process lives, and /readyz that the store answers and the server
does not drain. /metrics is for Prometheus.

TERM and INT drain: new work is refused with 503, streams are told to move, and what was
begun is answered, for the time of --drain at most. No lock is given back: other servers
go on with them. A second signal ends it at once. HUP has the certificate and the callers
read again, which the server also does by itself when their files have changed.

The exit status is 0 after a signal, or
  64  wrong arguments                   77   the store refuses our rights
  69  the store cannot be reached, or   78   other hosts can reach the address,
      the address cannot be had              and everybody may do everything; or a
  128 + n if a second signal n ended it      file cannot be used`,
		Example: `  holdfast serve
  holdfast serve --demo
  holdfast serve --listen unix:///run/holdfast.sock --store redis://redis.internal:6379
  holdfast serve --listen :7420 --callers /etc/holdfast/callers.json --tls-cert cert.pem --tls-key key.pem`,
		Args: words(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.seeded = cmd.Flags().Changed("demo-seed")
			return a.serve(cmd.Context(), &f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.listen, "listen", nil, "`ADDRESS`: host:port or unix:///path; may be repeated (default "+serve.DefaultAddress+")")
	flags.StringVar(&f.callers, "callers", "", "`FILE` of who may do what: see holdfast serve add-caller --help")
	flags.BoolVar(&f.insecure, "insecure", false, "let everybody who reaches the server do everything")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "`FILE` with the certificate to show at addresses, and those that it is signed by")
	flags.StringVar(&f.tlsKey, "tls-key", "", "`FILE` with its key")
	flags.StringArrayVar(&f.hosts, "host", nil, "`NAME` by which clients know a server without --callers, beside localhost; may be repeated")
	flags.StringVar(&f.secretFile, "secret-file", "", "`FILE` with what lease IDs are made of, the same for all servers of the store (default: kept in the store)")
	flags.IntVar(&f.limits.Waiters, "max-waiters", 10_000, "how many requests of one caller may wait here")
	flags.IntVar(&f.limits.Streams, "max-streams", 5_000, "how many streams one caller may have here")
	flags.IntVar(&f.limits.Leases, "max-leases", 100_000, "how many leases one caller may have through this server")
	durationVar(flags, &f.drain, "drain", 30*time.Second, "how long requests may take to their end after TERM")
	flags.StringVar(&f.metrics, "metrics-listen", "", "`ADDRESS` where /metrics is, whoever asks, and nowhere else")
	flags.StringVar(&f.profiles, "pprof", "", "loopback `ADDRESS` for go tool pprof")
	flags.StringVar(&f.logFormat, "log-format", "", "`FORMAT` of the log on standard error: text or json (default: text on a terminal, else json)")
	flags.StringVar(&f.logLevel, "log-level", "info", "`LEVEL` of what is logged: debug, info, warn or error")
	flags.BoolVar(&f.accessLog, "access-log", false, "log each request")
	flags.BoolVar(&f.demo, "demo", false, "serve locks in memory, which a fleet takes that is made up")
	flags.Uint64Var(&f.demoSeed, "demo-seed", 1, "`NUMBER` that the names in the demo follow from")
	cmd.AddCommand(a.addCallerCommand())
	return cmd
}
