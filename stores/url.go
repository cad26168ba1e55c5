package stores

import (
	"net/url"
	"strings"
)

// isScheme reports whether what stands in front of a colon is a scheme by RFC 3986,
// of ASCII letters, digits and +-. What is anything else is not quoted: it may be the
// beginning of a password.
func isScheme(text string) bool {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return text != "" && len(text) <= 32 && strings.Contains(alphabet, text[:1]) && strings.Trim(text, alphabet+"0123456789+-.") == ""
}

// plainScheme returns a scheme in small letters, with redis where it says valkey,
// which is another name for the same.
func plainScheme(scheme string) string {
	return strings.Replace(strings.ToLower(scheme), "valkey", "redis", 1)
}

// Public returns rawURL without credentials, to be shown, logged and handed on. A
// malformed URL, of which nobody can say where its password ends, is its scheme and a
// colon, and what is not a URL at all is empty.
func Public(rawURL string) string {
	public, _ := strip(rawURL)
	return public
}

// HasCredentials reports whether rawURL has more in it than Public shows: a user, a
// password, or what may be one.
func HasCredentials(rawURL string) bool {
	_, stripped := strip(rawURL)
	return stripped
}

// HasPassword reports whether rawURL, if it is well-formed, has a password in it,
// which others must not see. A user without one may be seen.
func HasPassword(rawURL string) bool {
	p, ok := split(rawURL)
	_, password, _ := strings.Cut(strings.TrimSuffix(p.user, "@"), ":")
	return ok && (password != "" || strings.Contains(p.rest, "sentinel_password="))
}

// strip returns rawURL without credentials, and whether it had any, or may have
// had: of a malformed one only the scheme is left, and nothing of what is not one.
func strip(rawURL string) (public string, stripped bool) {
	p, ok := split(rawURL)
	if !ok {
		scheme, rest, isURL := strings.Cut(rawURL, ":")
		if !isURL || !isScheme(scheme) {
			return "", rawURL != "" // whatever it is
		}
		return scheme + ":", rest != ""
	}
	rest, stripped, ok := p.stripRest()
	switch {
	case !isScheme(p.scheme):
		return "", true
	case !ok:
		return p.scheme + ":", true
	}
	return p.scheme + "://" + p.hosts + rest, stripped || p.user != ""
}

// parts are those of scheme://user:password@a,b,c/path?query, joined as they
// stand there. Several hosts are not part of a standard URL: url.Parse does not
// take them.
type parts struct {
	scheme string
	user   string // with the @ behind it
	hosts  string
	rest   string
}

// split takes a URL to pieces, if it has an authority.
func split(rawURL string) (p parts, ok bool) {
	p.scheme, p.hosts, ok = strings.Cut(rawURL, "://")
	if i := strings.IndexAny(p.hosts, "/?#"); i >= 0 {
		p.hosts, p.rest = p.hosts[:i], p.hosts[i:]
	}
	if i := strings.LastIndexByte(p.hosts, '@') + 1; i > 0 {
		p.user, p.hosts = p.hosts[:i], p.hosts[i:]
	}
	return p, ok
}

// stripRest returns what is behind the hosts without the parameters that are
// credentials, and whether there were any. It is not ok if a part of it may be one
// that is not told apart.
func (p parts) stripRest() (rest string, stripped, ok bool) {
	u, err := url.Parse(p.rest)
	if err != nil || u.Fragment != "" || p.hidesPassword() {
		return "", true, false
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", true, false
	}
	for name, values := range q {
		// What no store takes is refused, but somebody has written it.
		text := strings.ToLower(name + "=" + strings.Join(values, "&"))
		if name == "sentinel_user" || strings.Contains(text, "password=") {
			q.Del(name)
			stripped = true
		}
	}
	if stripped {
		u.RawQuery = q.Encode()
	}
	return u.String(), stripped, true
}

// hidesPassword reports whether what is taken for hosts and a path may be a password
// with special characters. A file has no hosts, and its path may have an @ in it.
func (p parts) hidesPassword() bool {
	if plainScheme(p.scheme) == "sqlite" {
		return p.hosts != "" || p.user != "" || !strings.HasPrefix(p.rest, "/")
	}
	return strings.Contains(p.rest, "@")
}
