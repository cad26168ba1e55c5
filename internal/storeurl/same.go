package storeurl

import (
	"cmp"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Same reports whether two URLs, without credentials, name the same store. It ignores the order of
// the hosts, standard ports, TLS and other parameters of the connection, and symbolic links. It
// does not ask the network, so two names of one host count as two stores.
func Same(a, b string) bool { return a == b || identity(a) == identity(b) }

// identity returns the part of a URL that identifies the store.
func identity(rawURL string) string {
	p, ok := Split(rawURL)
	if !ok {
		return rawURL
	}
	u, err := url.Parse(p.Rest)
	if err != nil {
		return rawURL
	}
	scheme, prefix := PlainScheme(p.Scheme), "?prefix="+url.QueryEscape(u.Query().Get("prefix"))
	switch scheme {
	case "sqlite", "http+unix":
		return scheme + "://" + realPath(u.Path)
	case "http", "https":
		port := map[string]string{"http": "80", "https": "443"}[scheme]
		return "http://" + hosts(p, port) + strings.TrimSuffix(u.Path, "/")
	case "postgres", "postgresql":
		return postgres(p, u)
	case "redis+unix":
		db := u.Query().Get("db")
		if db == "0" {
			db = ""
		}
		return scheme + "://" + realPath(u.Path) + prefix + "&db=" + db
	}
	scheme = strings.Replace(scheme, "rediss", "redis", 1)
	port := "6379"
	if strings.Contains(scheme, "sentinel") {
		port = "26379"
	}
	path := strings.TrimSuffix(u.Path, "/")
	if path == "/0" {
		path = ""
	}
	return scheme + "://" + hosts(p, port) + path + prefix
}

// postgres is identity for PostgreSQL, where a schema of a database is a store.
func postgres(p Parts, u *url.URL) string {
	q := u.Query()
	where := url.Values{}
	for _, name := range []string{"host", "port", "service"} {
		where.Set(name, q.Get(name))
	}
	where.Set("schema", cmp.Or(q.Get("schema"), "holdfast"))
	return "postgres://" + hosts(p, "5432") + "/" + cmp.Or(q.Get("dbname"), strings.Trim(u.Path, "/")) + "?" + where.Encode()
}

// hosts returns the hosts, sorted, each with a port.
func hosts(p Parts, port string) string {
	var all []string
	for host := range strings.SplitSeq(strings.ToLower(p.Hosts), ",") {
		if h, err := url.Parse("redis://" + host); err == nil && h.Port() == "" {
			host = net.JoinHostPort(h.Hostname(), port)
		}
		all = append(all, host)
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// realPath returns the path of a file without symbolic links, if the file can be found.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}
