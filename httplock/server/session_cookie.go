package server

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const (
	// cookieName is the name of the cookie of a session. It has no Path: a browser then
	// sends it for URLs below /v1, after any prefix that a proxy has.
	cookieName = "holdfast_session"

	// sessionTime is how long a session lasts, by the clock of the server.
	sessionTime = 12 * time.Hour

	// longestToken is the longest token that fits into a cookie when sealed: browsers keep
	// cookies of up to 4,096 bytes.
	longestToken = 2900 // bytes

	// sealLabel separates the key of cookies from other uses of the secret.
	sealLabel = "holdfast session cookie 1"
)

// seal encrypts a token, and the time when the session ends, for a cookie. Every server of the
// store can open it, and no one else can.
func (s *Server) seal(ctx context.Context, token string) (string, error) {
	box, err := s.box(ctx)
	if err != nil {
		return "", err
	}
	end := uint64(time.Now().Add(sessionTime).UnixMilli())
	plain := append(binary.BigEndian.AppendUint64(nil, end), token...)
	return base64.RawURLEncoding.EncodeToString(box.Seal(nil, nil, plain, nil)), nil
}

// open returns the token of a cookie. ok is false if the session has ended, or if no server of
// this store has sealed it.
func (s *Server) open(ctx context.Context, sealed string) (token string, ok bool, err error) {
	box, err := s.box(ctx)
	if err != nil {
		return "", false, err
	}
	text, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return "", false, nil
	}
	plain, err := box.Open(nil, nil, text, nil)
	if err != nil || len(plain) < 8 {
		return "", false, nil
	}
	end := time.UnixMilli(int64(binary.BigEndian.Uint64(plain)))
	return string(plain[8:]), time.Now().Before(end), nil
}

// box returns the cipher of cookies: AES-GCM with a random nonce in front, and a key that is
// derived from the secret of the servers.
func (s *Server) box(ctx context.Context) (cipher.AEAD, error) {
	secret, err := s.house.Secret(ctx)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, nil, sealLabel, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// sealedToken returns the session cookie of r, or "" if there is none. A header Authorization
// takes precedence: the cookie then does not count. fromPage has already refused requests that
// pages of other origins make a browser send.
func sealedToken(r *http.Request) string {
	cookie, err := r.Cookie(cookieName)
	if err != nil || r.Header["Authorization"] != nil {
		return ""
	}
	return cookie.Value
}

// hasOrigin reports whether r changes nothing, or names the page that has sent it. Browsers name
// the page in each request that changes something.
func hasOrigin(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead ||
		r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != ""
}

// ofSession returns r with the token of its session in the header Authorization, or nil if r has
// no session.
func (s *Server) ofSession(r *door.Request) (*http.Request, error) {
	sealed := sealedToken(r.Request)
	switch {
	case sealed == "":
		return nil, nil
	case !hasOrigin(r.Request):
		return nil, errNoOrigin
	}
	ctx, cancel := r.Budgeted()
	defer cancel()
	token, ok, err := s.open(ctx, sealed)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, sessionOver(r.Request)
	}
	return withToken(r.Request, token), nil
}

var errNoOrigin error = &door.Refusal{
	Status: http.StatusForbidden, Code: "cross-site",
	Detail: "a cookie alone does not do for what changes something: the request must say, by Origin or Sec-Fetch-Site, which page has sent it, or show its token in Authorization",
}

// sessionOver returns the refusal of a session that has ended, and makes the browser forget the
// cookie.
func sessionOver(r *http.Request) error {
	header := door.Challenge(true)
	header.Set("Set-Cookie", cookieOf(r, "").String())
	return &door.Refusal{
		Status: http.StatusUnauthorized, Code: "session-over", Header: header,
		Detail: fmt.Sprintf("the session is over: sign in again; it lasts for %s, or until its token is not known any more", lockinfo.Span(sessionTime)),
	}
}

// withToken returns a copy of r with this token.
func withToken(r *http.Request, token string) *http.Request {
	shown := *r
	shown.Header = maps.Clone(r.Header)
	shown.Header["Authorization"] = []string{"Bearer " + token}
	return &shown
}

// checkToken checks the form of a token. Its error does not contain the token.
func checkToken(token string) error {
	switch {
	case len(token) > longestToken:
		return door.Invalid(fmt.Sprintf("token: it has %d bytes, and a cookie has room for %d: send it as Authorization: Bearer instead", len(token), longestToken))
	case token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return door.Invalid("token: want one as behind Authorization: Bearer, without spaces")
	}
	return nil
}

// cookieOf returns the cookie of a session; "" makes the browser forget it.
func cookieOf(r *http.Request, sealed string) *http.Cookie {
	c := &http.Cookie{
		Name: cookieName, Value: sealed, MaxAge: int(sessionTime.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: byTLS(r),
	}
	if sealed == "" {
		c.MaxAge = -1
	}
	return c
}

// byTLS reports whether the browser uses TLS, to this server or to a proxy that reports it.
// A browser whose request claims it falsely does not send the cookie back.
func byTLS(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// inTheClear reports whether the network may read r. The header Origin of a browser passes
// every proxy, while the address of r may belong to a proxy. A request without Origin does
// not come from a browser.
func inTheClear(r *http.Request) bool {
	if byTLS(r) {
		return false
	}
	page, err := url.Parse(r.Header.Get("Origin"))
	if err != nil || page.String() == "" {
		return !caller.OverUnix(r)
	}
	addr, _ := netip.ParseAddr(page.Hostname()) // a name has no address
	return page.Scheme != "https" && page.Hostname() != "localhost" && !addr.IsLoopback()
}

// warnOfPlainHTTP logs once that tokens come in the clear.
func (s *Server) warnOfPlainHTTP(r *door.Request) {
	if !inTheClear(r.Request) {
		return
	}
	s.warned.Do(func() {
		s.house.Log.LogAttrs(r.Context(), slog.LevelWarn,
			"a user signs in over plain HTTP: the network can read the token; use TLS, or let the proxy with TLS send X-Forwarded-Proto: https",
			slog.String("remote", r.RemoteAddr))
	})
}
