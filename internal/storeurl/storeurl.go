// Package storeurl reads the URLs of stores: it removes credentials, and compares stores.
// Package stores opens them.
package storeurl

import (
	"net/url"
	"strings"
)

// IsScheme reports whether the text before a colon is a scheme by RFC 3986, of ASCII letters,
// digits and +-. Other text is never quoted: it may be the beginning of a password.
func IsScheme(text string) bool {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return text != "" && len(text) <= 32 && strings.Contains(alphabet, text[:1]) && strings.Trim(text, alphabet+"0123456789+-.") == ""
}

// PlainScheme returns a scheme in lower case, with redis in place of valkey.
func PlainScheme(scheme string) string {
	return strings.Replace(strings.ToLower(scheme), "valkey", "redis", 1)
}

// Public returns rawURL without credentials, for output, logs and commands. A malformed URL,
// in which the end of the password is unknown, becomes its scheme and a colon; text that is
// not a URL becomes empty.
func Public(rawURL string) string {
	public, _ := strip(rawURL)
	return public
}

// HasCredentials reports whether Public leaves out a part of rawURL: a user, a password, or text
// that may be one.
func HasCredentials(rawURL string) bool {
	_, stripped := strip(rawURL)
	return stripped
}

// HasPassword reports whether rawURL is well-formed and has a password, which others must not see.
// A user name alone is not secret.
func HasPassword(rawURL string) bool {
	p, ok := Split(rawURL)
	_, password, _ := strings.Cut(strings.TrimSuffix(p.User, "@"), ":")
	_, query, _ := strings.Cut(p.Rest, "?")
	params, _ := url.ParseQuery(query)
	return ok && (password != "" || strings.Contains(p.Rest, "password=") || HasPassword(params.Get("listen")))
}

// strip returns rawURL without credentials, and whether it had any, or may have had any. For a
// malformed URL it returns only the scheme and a colon, and for other text an empty string.
func strip(rawURL string) (public string, stripped bool) {
	p, ok := Split(rawURL)
	if !ok {
		scheme, rest, isURL := strings.Cut(rawURL, ":")
		if !isURL || !IsScheme(scheme) {
			return "", rawURL != "" // it may be a password
		}
		return scheme + ":", rest != ""
	}
	rest, stripped, ok := p.stripRest()
	switch {
	case !IsScheme(p.Scheme):
		return "", true
	case !ok:
		return p.Scheme + ":", true
	}
	return p.Scheme + "://" + p.Hosts + rest, stripped || p.User != ""
}

// Parts are the parts of scheme://user:password@a,b,c/path?query, in this order. url.Parse
// refuses such URLs, because a standard URL has no list of hosts.
type Parts struct {
	Scheme string
	User   string // user and password, with the @
	Hosts  string
	Rest   string
}

// Split splits a URL into its parts. ok is false if it has no authority.
func Split(rawURL string) (p Parts, ok bool) {
	p.Scheme, p.Hosts, ok = strings.Cut(rawURL, "://")
	if i := strings.IndexAny(p.Hosts, "/?#"); i >= 0 {
		p.Hosts, p.Rest = p.Hosts[:i], p.Hosts[i:]
	}
	if i := strings.LastIndexByte(p.Hosts, '@') + 1; i > 0 {
		p.User, p.Hosts = p.Hosts[:i], p.Hosts[i:]
	}
	return p, ok
}

// stripRest returns the path and the query without credentials, and whether there were any.
// ok is false if it may contain a credential that cannot be separated.
func (p Parts) stripRest() (rest string, stripped, ok bool) {
	u, err := url.Parse(p.Rest)
	if err != nil || u.Fragment != "" || p.hidesPassword() {
		return "", true, false
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", true, false
	}
	for name, values := range q {
		// Stores refuse these parameters, but a URL that is shown may have them all the same.
		text := strings.ToLower(name + "=" + strings.Join(values, "&"))
		if name == "sentinel_user" || strings.Contains(text, "password=") || name == "listen" {
			q.Del(name)
			stripped = true
		}
	}
	if stripped {
		u.RawQuery = q.Encode()
	}
	return u.String(), stripped, true
}

// hidesPassword reports whether the hosts and the path may be part of a password with special
// characters. The URL of a file has no hosts, and its path may contain an @.
func (p Parts) hidesPassword() bool {
	if PlainScheme(p.Scheme) == "sqlite" {
		return p.Hosts != "" || p.User != "" || !strings.HasPrefix(p.Rest, "/")
	}
	return strings.Contains(p.Rest, "@")
}
