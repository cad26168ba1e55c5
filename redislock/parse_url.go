package redislock

import (
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
	"github.com/holdfast-locks/holdfast/rediscore"
)

// An address is a parsed URL.
type address struct {
	scheme string
	kind   kind
	hosts  []string // host:port
	user   *url.Userinfo
	path   []string
	params url.Values
}

// A kind is how the servers of a URL belong together.
type kind int

const (
	oneServer kind = iota
	bySentinel
	inCluster
)

// schemes are the kinds by the scheme without TLS's s.
var schemes = map[string]kind{"redis": oneServer, "redis+sentinel": bySentinel, "redis+cluster": inCluster}

// The parameters of a URL.
const (
	paramPrefix           = "prefix"
	paramClientName       = "client_name"
	paramTellDeletions    = "tell_deletions"
	paramForeign          = "foreign"
	paramSentinelUser     = "sentinel_user"
	paramSentinelPassword = "sentinel_password"
	paramCA               = "tls_ca"
	paramCert             = "tls_cert"
	paramKey              = "tls_key"
	paramServerName       = "tls_server_name"
)

// parseURL returns the options of the client and of the engine that a URL asks for. Its
// errors quote no part of the URL that may be a misplaced password.
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
		Prefix: a.params.Get(paramPrefix), NoForeignClients: a.params.Get(paramForeign) == "0", TellDeletions: a.params.Get(paramTellDeletions) == "1",
	}
	if err := rediscore.CheckPrefix(set.Prefix); err != nil {
		return opts, set, err
	}
	opts = clientOptions(a.hosts)
	switch a.kind {
	case oneServer:
		opts.ForceSingleClient = true // do not ask the server whether it is a cluster
	case inCluster:
		opts.ClusterOption.ShardsRefreshInterval = topologyAge
		opts.ClusterOption.MaxMovedRedirections = maxRedirections
	case bySentinel:
		opts.Dialer.Timeout = sentinelDial
		opts.Sentinel.Dialer = opts.Dialer
		opts.Sentinel.Dialer.KeepAlive = sentinelPing
	}
	if name := a.params.Get(paramClientName); name != "" {
		if strings.ContainsAny(name, " \n") {
			return opts, set, errors.New("client_name must not contain spaces")
		}
		opts.ClientName = name
	}
	if set.TellDeletions {
		opts.ClientTrackingOptions = []string{} // the client itself has no use for them
	}
	if err := a.login(&opts); err != nil {
		return opts, set, err
	}
	if err := a.readPath(&opts); err != nil {
		return opts, set, err
	}
	if opts.TLSConfig, err = a.tlsConfig(); err != nil {
		return opts, set, err
	}
	opts.Sentinel.TLSConfig, opts.Sentinel.ClientName = opts.TLSConfig, opts.ClientName
	return opts, set, nil
}

// parseAddress takes a URL to pieces. A standard URL does not have several
// hosts, so those behind the first are taken out before.
func parseAddress(rawURL string) (*address, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	a := &address{scheme: scheme}
	a.kind, ok = schemeKind(scheme, ok)
	if !ok {
		return nil, errors.New("want redis://host:port, redis+sentinel://host:port/master or redis+cluster://host:port, or the same with rediss")
	}
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		end = i
	}
	authority := rest[:end]
	user := ""
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, authority = authority[:i+1], authority[i+1:]
	}
	hosts := strings.Split(authority, ",")
	if len(hosts) > 1 && a.kind == oneServer {
		return nil, errors.New("it names several hosts: want redis+sentinel:// or redis+cluster://")
	}
	u, err := url.Parse("redis://" + user + hosts[0] + rest[end:])
	if err != nil {
		return nil, errors.New("it is malformed; write special characters of the password as %XX, for example @ as %40")
	}
	if u.Fragment != "" {
		return nil, errors.New("it must not have a fragment")
	}
	a.user = u.User
	if path := strings.TrimPrefix(u.Path, "/"); path != "" {
		a.path = strings.Split(path, "/")
	}
	if err := a.readHosts(hosts); err != nil {
		return nil, err
	}
	return a, a.readParams(u.RawQuery)
}

func schemeKind(scheme string, ok bool) (kind, bool) {
	if strings.HasPrefix(scheme, "rediss") {
		scheme = "redis" + strings.TrimPrefix(scheme, "rediss")
	}
	k, known := schemes[scheme]
	return k, ok && known
}

// secure reports whether the URL asks for TLS.
func (a *address) secure() bool { return strings.HasPrefix(a.scheme, "rediss") }

func (a *address) readHosts(hosts []string) error {
	standard := "6379"
	if a.kind == bySentinel {
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
		case paramPrefix, paramClientName:
		case paramTellDeletions, paramForeign:
			if values[0] != "1" && values[0] != "0" {
				return fmt.Errorf("%s must be 1 or 0", name)
			}
		case paramSentinelUser, paramSentinelPassword:
			if a.kind != bySentinel {
				return fmt.Errorf("the parameter %s is for sentinels only", name)
			}
		case paramCA, paramCert, paramKey, paramServerName:
			if !a.secure() {
				return fmt.Errorf("the parameter %s needs TLS: want rediss", name)
			}
		default:
			return errors.New("it has an unknown parameter; see redislock.Open for those that there are")
		}
	}
	return nil
}

// login sets who we are to the servers and to the sentinels.
func (a *address) login(opts *rueidis.ClientOption) error {
	password, ok := a.user.Password()
	if a.user != nil && !ok {
		return errors.New("it has a user name but no password; want user:password@ or :password@")
	}
	opts.Username, opts.Password = a.user.Username(), password
	opts.Sentinel.Username, opts.Sentinel.Password = a.params.Get(paramSentinelUser), a.params.Get(paramSentinelPassword)
	return nil
}

// readPath sets the master's name and the number of the database.
func (a *address) readPath(opts *rueidis.ClientOption) error {
	path := a.path
	if a.kind == bySentinel {
		if len(path) == 0 || path[0] == "" {
			return errors.New("the path must begin with the name of the master")
		}
		opts.Sentinel.MasterSet, path = path[0], path[1:]
	}
	switch {
	case len(path) == 0:
		return nil
	case a.kind == inCluster:
		return errors.New("a cluster has no other databases: want no path")
	}
	db, err := strconv.Atoi(path[0])
	if err != nil || db < 0 || len(path) > 1 {
		return errors.New("the path must be the number of a database")
	}
	opts.SelectDB = db
	return nil
}

// tlsConfig returns nil if the URL does not ask for TLS. Where there are
// several servers, the client checks each certificate against the host that
// it dials, unless the URL gives another name.
func (a *address) tlsConfig() (*tls.Config, error) {
	if !a.secure() {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.params.Get(paramServerName)}
	var err error
	if file := a.params.Get(paramCA); file != "" {
		if config.RootCAs, err = readCA(file); err != nil {
			return nil, err
		}
	}
	cert, key := a.params.Get(paramCert), a.params.Get(paramKey)
	switch {
	case cert == "" && key == "":
		return config, nil
	case cert == "" || key == "":
		return nil, fmt.Errorf("%s and %s belong together", paramCert, paramKey)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", paramCert, paramKey, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// readCA reads the certificates of a PEM file.
func readCA(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", paramCA, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: the file has no certificate in PEM form", paramCA)
	}
	return pool, nil
}

// topologyAge is how long the client may send requests to a node that hangs
// and was replaced: only one that breaks its connections shows at once.
const topologyAge = time.Second

// maxRedirections is how often a request may be sent on to another node. Nodes
// that disagree would send it to and fro for as long as its context lasts.
const maxRedirections = 4

// Where sentinels name the master, its machine may vanish together with the
// sentinel that would say so. The client then has to find out for the one and
// for the other that nobody is there, and may do so at once, because there are
// others to ask.
const (
	sentinelDial    = 1500 * time.Millisecond // makes a connection
	sentinelPing    = 500 * time.Millisecond  // a sentinel that says nothing is asked
	sentinelSilence = time.Second             // an answer is waited for
)

// clientOptions are the same for every store.
func clientOptions(hosts []string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: hosts,
		ClientName:  "holdfast",

		DisableRetry:     true, // a request is sent once: we repeat it, with a new deadline
		DisableCache:     true, // a cached answer says nothing about a lock
		AlwaysPipelining: true, // a caller's deadline must not cost the connection that others use

		PipelineMultiplex: -1, // one connection: a cancel rarely overtakes its acquire

		// Each connection is pinged after a second without an answer.
		Dialer:           net.Dialer{Timeout: dialTimeout, KeepAlive: time.Second, Control: smallSegments},
		ConnWriteTimeout: silence,
		ClientSetInfo:    rueidis.DisableClientSetInfo,
	}
}
