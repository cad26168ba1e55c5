package pglock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-locks/holdfast/driver"
)

// Options configure New. A zero field is the default.
type Options struct {
	// Schema is the schema of the tables and functions; no other program may use it. Default:
	// holdfast. Engines with different schemas do not see each other's locks.
	Schema string

	// History records and publishes the events of each name: see driver.Historian.
	// Engines without it record nothing. Each event is another row to write.
	History bool

	// NoInstall makes the engine change nothing in the database: a missing schema is an error.
	// Without it the engine creates the schema and its contents.
	NoInstall bool

	// Listen is the URL of the same database for the connection that listens to notifications. It
	// must bypass a pooler in transaction mode, which does not pass them on. Without it, waiters
	// behind such a pooler learn of their grant by polling. Default: as for all other connections.
	Listen string

	// TokenMemory is how long the last token of an unused name is remembered: 1 second to 365 days,
	// counted from the token, read as microseconds since 1970. All engines of a schema should use
	// the same value. Default: driver.TokenMemory.
	TokenMemory time.Duration

	// Logger receives a warning, once, if the server's notifications do not arrive.
	// Default: slog.Default at the time.
	Logger *slog.Logger
}

// Open connects to a database and returns when the schema exists:
//
//	postgres://[user[:password]@]host[:port][,host[:port]…]/database[?parameters]
//
// The scheme may be postgresql instead. Each of these parameters may occur once:
//
//	schema=NAME        where the tables are; see Options
//	history=1          what happens to each name is recorded; see Options.History
//	install=off        the schema must be there already; see Options.NoInstall
//	listen=URL         a direct connection for notifications; see Options.Listen
//	token_memory=D     how long the token of an unused name is remembered, such as 1h
//	pool_max_conns=N   how many connections there may be; default 4, or the number of
//	                   CPUs. Four more renew and release leases when all are in use, and one
//	                   listens. The other parameters of pgxpool may be there too
//
// The other parameters are libpq's: sslmode, sslrootcert, sslcert, sslkey, passfile,
// service, servicefile, connect_timeout, target_session_attrs and so on. With several hosts the
// default of target_session_attrs is read-write. The host, the port, the database and the password
// are not taken from the environment.
//
// A malformed URL, a database that is not encoded in UTF8 and a missing schema with install=off are
// ErrInvalid. A server that cannot be reached or is a standby is ErrUnavailable, one that refuses
// the user or a right is ErrPermission, and a schema with the layout of another version is
// ErrKindMismatch. No error contains the password. Open returns soon after ctx ends.
func Open(ctx context.Context, rawURL string) (*Engine, error) {
	config, opts, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	e, err := newEngine(config, opts)
	if err != nil {
		return nil, err
	}
	if err := e.ready(ctx); err != nil {
		_ = e.Close()
		return nil, err
	}
	return e, nil
}

// New returns an engine that connects as pool does: to the same server, with the same hooks, and
// with as many connections, but always with the client_encoding UTF8. The engine has its own
// connections, because only these can show that a commit was not replicated, and keep renewals from
// waiting behind other requests. New does not change pool. If a hook sets another client_encoding,
// requests fail with ErrInvalid.
//
// A nil pool and a bad option are ErrInvalid. New does not block: the first request connects, and
// installs the schema.
func New(pool *pgxpool.Pool, opts *Options) (*Engine, error) {
	if pool == nil {
		return nil, fmt.Errorf("%w engine: the pool is nil", driver.ErrInvalid)
	}
	return newEngine(pool.Config(), *cmp.Or(opts, &Options{}))
}

// newEngine makes an engine without connecting.
func newEngine(config *pgxpool.Config, opts Options) (*Engine, error) {
	opts.Schema = cmp.Or(opts.Schema, defaultSchema)
	opts.TokenMemory = cmp.Or(opts.TokenMemory, driver.TokenMemory)
	opts.Logger = cmp.Or(opts.Logger, slog.Default())
	listen, err := opts.check(config)
	if err != nil {
		return nil, fmt.Errorf("%w option: %w", driver.ErrInvalid, err)
	}
	pools, err := newPools(config, &opts)
	if err != nil {
		return nil, fmt.Errorf("%w pool: %w", driver.ErrInvalid, err)
	}
	e := &engine{
		pools: pools, name: pgx.Identifier{opts.Schema}.Sanitize(), opts: opts, listen: listen,
		inbox: strings.ToLower(rand.Text()),
	}
	e.sweeper.start()
	return &Engine{e}, nil
}

// check checks the options, and returns the settings of the listening connection.
func (opts *Options) check(config *pgxpool.Config) (listen *pgx.ConnConfig, err error) {
	if err := checkSchema(opts.Schema); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if err := checkTokenMemory(opts.TokenMemory); err != nil {
		return nil, fmt.Errorf("token_memory: %w", err)
	}
	if opts.Listen != "" {
		var none Options
		if config, none, err = parseURL(opts.Listen); err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		if none != (Options{}) {
			return nil, errors.New("listen: its URL has parameters that belong in the other one")
		}
	}
	listen = config.ConnConfig.Copy()
	configure(listen)
	listen.RuntimeParams["application_name"] += listenerSuffix
	return listen, nil
}

// checkSchema refuses names that cannot be quoted everywhere: comments in the SQL end with the
// line, the bodies of functions end with a dollar sign, and the doctor's texts with a quote.
func checkSchema(name string) error {
	if name == "" || len(name) > 63 || strings.ContainsAny(name, `$'\`) || !utf8.ValidString(name) || strings.ContainsFunc(name, isControl) || strings.HasPrefix(name, "pg_") {
		return errors.New("want the name of a schema: 1 to 63 bytes of UTF-8 without $, ', \\ and control characters, and not pg_…")
	}
	return nil
}

func checkTokenMemory(d time.Duration) error {
	if d < time.Second || d > 365*24*time.Hour {
		return errors.New("want 1s to 8760h")
	}
	return nil
}
