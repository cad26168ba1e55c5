package redislock

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/storeurl"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// An address is a parsed URL.
type address struct {
	mode   rediscore.Mode
	secure bool     // over TLS
	socket bool     // over a unix socket
	hosts  []string // host:port, or the path of the socket
	user   *url.Userinfo
	path   []string
	params url.Values
}

// schemes has the schemes without the s of TLS, and without the alternative name valkey.
var schemes = map[string]rediscore.Mode{
	"redis": rediscore.OneServer, socketScheme: rediscore.OneServer,
	"redis+sentinel": rediscore.BySentinel, "redis+cluster": rediscore.InCluster,
}

const socketScheme = "redis+unix"

// parseURL returns the options of the client and the engine from a URL. Its errors quote no part of
// the URL that may be a misplaced password.
func parseURL(rawURL string) (rueidis.ClientOption, rediscore.Options, error) {
	opts, set, err := parse(rawURL)
	if err != nil {
		return rueidis.ClientOption{}, rediscore.Options{}, fmt.Errorf("%w redis URL: %w", driver.ErrInvalid, err)
	}
	return opts, set, nil
}

func parse(rawURL string) (opts rueidis.ClientOption, set rediscore.Options, err error) {
	a, err := parseAddress(rawURL)
	if err != nil {
		return opts, set, err
	}
	set = rediscore.Options{
		Prefix: a.params.Get("prefix"), NoForeignClients: a.params.Get("foreign") == "0", TellDeletions: a.params.Get("tell_deletions") == "1",
		History: a.params.Get("history") == "1",
	}
	if set.TokenMemory, err = a.tokenMemory(); err != nil {
		return opts, set, err
	}
	opts = clientOptions(a.hosts)
	switch a.mode {
	case rediscore.OneServer:
		opts.ForceSingleClient = true // do not query the server for its mode
		if a.socket {
			opts.Dialer.Control = nil // which is about TCP
		}
	case rediscore.InCluster:
		opts.ClusterOption.ShardsRefreshInterval = topologyAge
		opts.ClusterOption.MaxMovedRedirections = maxRedirections
	case rediscore.BySentinel:
		opts.Dialer.Timeout = sentinelDial
		opts.Sentinel.Dialer = opts.Dialer
		opts.Sentinel.Dialer.KeepAlive = sentinelPing
	}
	if set.TellDeletions {
		opts.ClientTrackingOptions = []string{} // the client itself needs none
	}
	err = cmp.Or(set.Check(), a.login(&opts), a.readPath(&opts), a.readTLS(&opts))
	opts.Sentinel.TLSConfig, opts.Sentinel.ClientName = opts.TLSConfig, opts.ClientName
	set.Database = opts.SelectDB
	return opts, set, err
}

// parseAddress parses a URL. A standard URL has one host, so parseAddress parses the others
// separately.
func parseAddress(rawURL string) (*address, error) {
	a := &address{}
	parts, ok := storeurl.Split(rawURL)
	scheme := storeurl.PlainScheme(parts.Scheme)
	if rest, secure := strings.CutPrefix(scheme, "rediss"); secure {
		a.secure, scheme = true, "redis"+rest
	}
	var known bool
	if a.mode, known = schemes[scheme]; !ok || !known {
		return nil, errors.New("want redis://host:port, redis+sentinel://host:port/master or redis+cluster://host:port, the same with rediss for TLS, " +
			"or redis+unix:///path/redis.sock; valkey may stand for redis")
	}
	if a.socket = scheme == socketScheme; a.socket && a.secure {
		return nil, errors.New("a unix socket has no TLS: want redis+unix:///path/redis.sock")
	}
	hosts := strings.Split(parts.Hosts, ",")
	if len(hosts) > 1 && a.mode == rediscore.OneServer {
		return nil, errors.New("it names several hosts: want redis+sentinel:// or redis+cluster://")
	}
	u, err := url.Parse("redis://" + parts.User + hosts[0] + parts.Rest)
	if err != nil {
		return nil, errors.New("it is malformed; write special characters of the password as %XX, for example @ as %40")
	}
	if u.Fragment != "" {
		return nil, errors.New("it must not have a fragment")
	}
	a.user = u.User
	if a.socket {
		return a, cmp.Or(a.readSocket(parts.Hosts, u.Path), a.readParams(u.RawQuery))
	}
	if path := strings.TrimPrefix(u.Path, "/"); path != "" {
		a.path = strings.Split(path, "/")
	}
	if err := a.readHosts(hosts); err != nil {
		return nil, err
	}
	return a, a.readParams(u.RawQuery)
}

// readSocket sets the path of a unix socket.
func (a *address) readSocket(host, path string) error {
	if host != "" || len(path) < 2 || path[0] != '/' || strings.HasSuffix(path, "/") || strings.ContainsRune(path, 0) {
		return errors.New("want redis+unix:///path/redis.sock, with three slashes, or user:password@ between the second and the third; " +
			"?db=1 for a database")
	}
	a.hosts = []string{path}
	return nil
}

func (a *address) readHosts(hosts []string) error {
	standard := "6379"
	if a.mode == rediscore.BySentinel {
		standard = "26379"
	}
	for _, text := range hosts {
		u, err := url.Parse("redis://" + text)
		if err != nil || u.User != nil {
			return errors.New("a host is malformed; want host:port")
		}
		host, port := u.Hostname(), u.Port()
		if host == "" {
			return errors.New("it names no host")
		}
		if port == "" {
			port = standard
		}
		a.hosts = append(a.hosts, net.JoinHostPort(host, port))
	}
	return nil
}

func (a *address) readParams(rawQuery string) (err error) {
	if a.params, err = url.ParseQuery(rawQuery); err != nil {
		return errors.New("its parameters are malformed")
	}
	for name, values := range a.params {
		if len(values) != 1 {
			return fmt.Errorf("the parameter %s is there more than once", name)
		}
		switch name {
		case "prefix", "client_name", "token_memory":
		case "tell_deletions", "foreign", "history":
			if values[0] != "1" && values[0] != "0" {
				return fmt.Errorf("%s must be 1 or 0", name)
			}
		case "db":
			if !a.socket {
				return errors.New("the parameter db is for unix sockets only: the number of a database is the path")
			}
			a.path = values
		case "sentinel_user", "sentinel_password":
			if a.mode != rediscore.BySentinel {
				return fmt.Errorf("the parameter %s is for sentinels only", name)
			}
		case "tls_ca", "tls_cert", "tls_key", "tls_server_name":
			if !a.secure {
				return fmt.Errorf("the parameter %s needs TLS: want rediss", name)
			}
		default:
			return errors.New("it has an unknown parameter; see redislock.Open for those that there are")
		}
	}
	return nil
}

// tokenMemory returns Options.TokenMemory, or 0.
func (a *address) tokenMemory() (time.Duration, error) {
	if !a.params.Has("token_memory") {
		return 0, nil
	}
	d, err := time.ParseDuration(a.params.Get("token_memory"))
	if err != nil || d == 0 {
		return 0, errors.New("token_memory must be a duration, such as 1h or 24h")
	}
	return d, nil
}

// login sets the credentials for the servers and for the sentinels.
func (a *address) login(opts *rueidis.ClientOption) error {
	if name := a.params.Get("client_name"); strings.ContainsAny(name, " \n") {
		return errors.New("client_name must not contain spaces")
	} else if name != "" {
		opts.ClientName = name
	}
	password, ok := a.user.Password()
	if a.user != nil && !ok {
		return errors.New("it has a user name but no password; want user:password@ or :password@")
	}
	opts.Username, opts.Password = a.user.Username(), password
	opts.Sentinel.Username, opts.Sentinel.Password = a.params.Get("sentinel_user"), a.params.Get("sentinel_password")
	return nil
}

// readPath sets the master's name and the number of the database.
func (a *address) readPath(opts *rueidis.ClientOption) error {
	path := a.path
	if a.mode == rediscore.BySentinel {
		if len(path) == 0 || path[0] == "" {
			return errors.New("the path must begin with the name of the master")
		}
		opts.Sentinel.MasterSet, path = path[0], path[1:]
	}
	switch {
	case len(path) == 0:
		return nil
	case a.mode == rediscore.InCluster:
		return errors.New("a cluster has no other databases: want no path")
	}
	db, err := strconv.Atoi(path[0])
	if err != nil || db < 0 || len(path) > 1 {
		if a.socket {
			return errors.New("db must be the number of a database")
		}
		return errors.New("the path must be the number of a database")
	}
	opts.SelectDB = db
	return nil
}

// readTLS sets the TLS options, if the URL uses TLS. If there are several servers, the client
// checks each certificate against the host that it dials, unless the URL has tls_server_name.
func (a *address) readTLS(opts *rueidis.ClientOption) error {
	if !a.secure {
		return nil
	}
	opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.params.Get("tls_server_name")}
	if file := a.params.Get("tls_ca"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("tls_ca: %w", err)
		}
		opts.TLSConfig.RootCAs = x509.NewCertPool()
		if !opts.TLSConfig.RootCAs.AppendCertsFromPEM(text) {
			return errors.New("tls_ca: the file has no certificate in PEM form")
		}
	}
	cert, key := a.params.Get("tls_cert"), a.params.Get("tls_key")
	switch {
	case cert == "" && key == "":
		return nil
	case cert == "" || key == "":
		return errors.New("tls_cert and tls_key belong together")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("tls_cert and tls_key: %w", err)
	}
	opts.TLSConfig.Certificates = []tls.Certificate{pair}
	return nil
}

// topologyAge is how long the client may send requests to a node that hangs and was replaced. A
// node that closes its connections is noticed at once.
const topologyAge = time.Second

// maxRedirections is how often a request may be redirected to another node. Nodes that disagree
// would redirect it to each other until its context ends.
const maxRedirections = 4

// If sentinels name the master, its machine may fail together with the sentinel that would report
// it. The client then has to detect both failures. It may do so early, because there are other
// sentinels to ask.
const (
	sentinelDial    = 1500 * time.Millisecond // bounds connecting
	sentinelPing    = 500 * time.Millisecond  // a silent sentinel is pinged
	sentinelSilence = time.Second             // a reply may take this long
)

// clientOptions returns the options that all stores have in common.
func clientOptions(hosts []string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: hosts,
		ClientName:  "holdfast",

		DisableRetry:     true, // a request is sent once: the engine repeats it, with a new deadline
		DisableCache:     true, // a cached reply may be outdated
		AlwaysPipelining: true, // a caller's deadline must not cost the connection that others use

		PipelineMultiplex: -1, // one connection: a cancel rarely overtakes its acquire

		// Each connection is pinged after a second without a reply.
		Dialer:           net.Dialer{Timeout: dialTimeout, KeepAlive: time.Second, Control: smallSegments},
		ConnWriteTimeout: silence,
		ClientSetInfo:    rueidis.DisableClientSetInfo,
	}
}
