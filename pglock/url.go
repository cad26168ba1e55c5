package pglock

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/storeurl"
)

// ownParameters are the parameters of a URL that set an option. The others belong to libpq and the
// pool.
var ownParameters = map[string]func(opts *Options, value string) error{
	"schema": func(opts *Options, value string) error {
		opts.Schema = value
		return checkSchema(value)
	},
	"history": func(opts *Options, value string) error {
		opts.History = value == "1"
		return oneOf(value, "1", "0")
	},
	"install": func(opts *Options, value string) error {
		opts.NoInstall = value == "off"
		return oneOf(value, "on", "off")
	},
	"token_memory": func(opts *Options, value string) (err error) {
		if opts.TokenMemory, err = time.ParseDuration(value); err != nil || opts.TokenMemory == 0 {
			return errors.New("want a duration, such as 1h or 24h")
		}
		return checkTokenMemory(opts.TokenMemory)
	},
	"listen": func(opts *Options, value string) error {
		opts.Listen = value
		return nil // parsed with the others
	},
}

// libpqParameters are the parameters of libpq that pgx supports.
var libpqParameters = []string{
	"application_name", "channel_binding", "connect_timeout", "dbname", "host", "krbspn", "krbsrvname",
	"max_protocol_version", "min_protocol_version", "options", "passfile", "password", "port", "require_auth",
	"service", "servicefile", "ssl", "sslcert", "sslcertmode", "sslkey", "sslmode", "sslnegotiation",
	"sslpassword", "sslrootcert", "sslsni", "target_session_attrs", "user",
}

// poolParameters are the parameters of pgxpool.
var poolParameters = []string{
	"pool_health_check_period", "pool_max_conn_idle_time", "pool_max_conn_lifetime", "pool_max_conn_lifetime_jitter",
	"pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "pool_ping_timeout",
}

var errMalformed = errors.New("it is malformed; write special characters as %XX, for example @ as %40")

// parseURL returns the settings in a URL. Its errors quote nothing that may be a password.
func parseURL(rawURL string) (*pgxpool.Config, Options, error) {
	var opts Options
	text, err := takeOwn(rawURL, &opts)
	if err != nil {
		return nil, opts, fmt.Errorf("%w PostgreSQL URL: %w", driver.ErrInvalid, err)
	}
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, opts, fmt.Errorf("%w PostgreSQL URL: %w", driver.ErrInvalid, withoutURL(err))
	}
	return config, opts, nil
}

// withoutURL removes the URL from pgx's error about it.
func withoutURL(err error) error {
	if _, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		_, text, _ := strings.Cut(err.Error(), "`: ")
		return errors.New(text)
	}
	return err
}

// takeOwn sets opts from holdfast's own parameters, and returns the URL for pgx. The environment
// has no influence on which store the URL means.
func takeOwn(rawURL string, opts *Options) (string, error) {
	p, ok := storeurl.Split(rawURL)
	if scheme := strings.ToLower(p.Scheme); !ok || scheme != "postgres" && scheme != "postgresql" {
		return "", errors.New("want postgres://user@host:port/database")
	}
	if _, err := url.PathUnescape(rawURL); err != nil || strings.Count(p.User, "@") > 1 || strings.ContainsAny(p.Rest, "@#") || strings.ContainsFunc(rawURL, isSpace) {
		return "", errMalformed
	}
	path, query, _ := strings.Cut(p.Rest, "?")
	given, kept, err := readQuery(query, opts)
	if err != nil {
		return "", err
	}
	if given["service"] == "" {
		if p.Hosts == "" && given["host"] == "" {
			return "", errors.New("it names no host: want postgres://user@host:port/database, or ?host=/run/postgresql for a unix socket")
		}
		kept = append(kept, standard(p, path, given)...)
	}
	return "postgres://" + p.User + p.Hosts + path + "?" + strings.Join(kept, "&"), nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// isSpace reports whether r must be written as %XX in any case.
func isSpace(r rune) bool { return r == ' ' || isControl(r) }

// readQuery reads parameters as libpq does, which does not take + for a space. It returns all of
// them, and the text of those that are not holdfast's own.
func readQuery(query string, opts *Options) (given map[string]string, kept []string, err error) {
	given = map[string]string{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		rawKey, rawValue, found := strings.Cut(pair, "=")
		key, _ := url.PathUnescape(rawKey)
		value, _ := url.PathUnescape(rawValue)
		own := ownParameters[key]
		if own == nil && !slices.Contains(libpqParameters, key) && !slices.Contains(poolParameters, key) {
			return nil, nil, fmt.Errorf("it has an unknown parameter%s; see pglock.Open for those that there are", quoted(key))
		}
		if _, again := given[key]; again || !found || value == "" || strings.Contains(rawValue, "=") {
			return nil, nil, fmt.Errorf("parameter %s: want one value", key)
		}
		given[key] = value
		if own == nil {
			kept = append(kept, pair)
		} else if err := own(opts, value); err != nil {
			return nil, nil, fmt.Errorf("parameter %s: %w", key, err)
		}
	}
	switch attrs := given["target_session_attrs"]; attrs {
	case "", "read-write", "primary", "any":
		return given, kept, nil
	default:
		return nil, nil, errors.New("parameter target_session_attrs: locks need the server that writes: want read-write, primary or any")
	}
}

// quoted returns an unknown key for an error, if it looks like a key.
func quoted(key string) string {
	if key == "" || len(key) > 32 || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return fmt.Sprintf(" %q", key)
}

// standard returns default values for parameters that a URL lacks: otherwise variables such as
// PGPORT would choose the store, and PGPASSWORD the password.
func standard(p storeurl.Parts, path string, given map[string]string) (added []string) {
	hasPort := slices.ContainsFunc(strings.Split(p.Hosts, ","), func(host string) bool {
		return strings.LastIndexByte(host, ':') > strings.LastIndexByte(host, ']')
	})
	if given["port"] == "" && !hasPort {
		added = append(added, "port=")
	}
	if given["dbname"] == "" && strings.Trim(path, "/") == "" {
		added = append(added, "dbname=")
	}
	if _, password, _ := strings.Cut(p.User, ":"); strings.Trim(password, "@") == "" && given["password"] == "" {
		added = append(added, "password=") // then pgx reads the passfile
	}
	if given["target_session_attrs"] == "" {
		attrs := "any"
		if strings.Contains(p.Hosts+given["host"], ",") {
			attrs = "read-write"
		}
		added = append(added, "target_session_attrs="+attrs)
	}
	return added
}

func oneOf(value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("want %s", strings.Join(allowed, " or "))
}
