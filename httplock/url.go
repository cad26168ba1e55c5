package httplock

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

const urlForms = "http://host:port, https://host:port, several hosts as host1:port,host2:port, or http+unix:///run/holdfast.sock"

// An address is one server of a URL.
type address struct {
	url    *url.URL // without user and parameters; the host of a socket is localhost
	socket string
	token  string
	tls    *tls.Config
}

// serversOf returns the addresses in a URL. No error quotes the URL, which may contain a
// token.
func serversOf(rawURL string, o *Options) ([]address, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "http" && scheme != "https" && scheme != "http+unix" {
		return nil, fmt.Errorf("%w URL of a server: use %s", driver.ErrInvalid, urlForms)
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	user := ""
	if i := strings.LastIndexByte(authority, '@') + 1; i > 0 {
		user, authority = authority[:i], authority[i:]
	}
	var all []address
	for host := range strings.SplitSeq(authority, ",") {
		a, err := addressOf(scheme, user, host, path, o)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

func addressOf(scheme, user, host, path string, o *Options) (address, error) {
	plain := strings.TrimSuffix(scheme, "+unix")
	u, err := url.Parse(plain + "://" + user + host + path)
	switch {
	case err != nil || u.Fragment != "" || strings.Contains(path, "@"):
		return address{}, fmt.Errorf("%w URL of a server: it is malformed; write special characters of the token as %%40 and the like", driver.ErrInvalid)
	case scheme == "http+unix" && (host != "" || len(u.Path) < 2):
		return address{}, fmt.Errorf("%w URL of a server: write a socket with three slashes, as http+unix:///run/holdfast.sock", driver.ErrInvalid)
	case scheme != "http+unix" && u.Hostname() == "":
		return address{}, fmt.Errorf("%w URL of a server: it names no host: use %s", driver.ErrInvalid, urlForms)
	}
	a := address{url: &url.URL{Scheme: plain, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}, token: o.Token, tls: o.TLS}
	if scheme == "http+unix" {
		a.socket, a.url.Host, a.url.Path = u.Path, "localhost", ""
	}
	if a.token == "" {
		if u.User.Username() != "" {
			return a, fmt.Errorf("%w URL of a server: it names a user: write the token behind a colon, as in https://:TOKEN@host", driver.ErrInvalid)
		}
		a.token, _ = u.User.Password()
	}
	return a, a.parameters(u, o)
}

// parameters reads the parameters of the URL.
func (a *address) parameters(u *url.URL, o *Options) error {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fmt.Errorf("%w URL of a server: its parameters are malformed", driver.ErrInvalid)
	}
	file := q.Get("ca_file")
	switch {
	case len(q) > 1 || len(q) == 1 && len(q["ca_file"]) != 1:
		return fmt.Errorf("%w URL of a server: it has an unknown parameter: there is ca_file, and no other", driver.ErrInvalid)
	case len(q) == 0:
		return nil
	case a.url.Scheme != "https":
		return fmt.Errorf("%w URL of a server: ca_file is for https", driver.ErrInvalid)
	case o.TLS != nil:
		return fmt.Errorf("%w URL of a server: ca_file and Options.TLS are two answers to one question", driver.ErrInvalid)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%w URL of a server: ca_file: %w", driver.ErrInvalid, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("%w URL of a server: ca_file: there is no certificate in %s", driver.ErrInvalid, file)
	}
	a.tls = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return nil
}
