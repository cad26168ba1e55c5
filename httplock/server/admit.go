package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/problem"
)

// headerLimit is how many bytes the header of a request may have, its URL included.
const headerLimit = 16 << 10

// everybody is the caller on a server without authentication.
var everybody = caller.Caller{Name: "anonymous", Rights: caller.All}

// browsers refuses requests that a web page of another site makes a browser send. It has no
// state.
var browsers http.CrossOriginProtection

// admit checks a request, finds its caller, and passes it to its handler.
func (s *Server) admit(w http.ResponseWriter, r *door.Request) error {
	if r.ContentLength != 0 {
		door.SetBodyTime(w, time.Now().Add(door.BodyTime))
	}
	h := w.Header()
	h["X-Content-Type-Options"], h["Cache-Control"] = []string{"nosniff"}, []string{"no-store"}
	if err := s.fromElsewhere(w, r.Request, s.callers != nil); err != nil {
		return err
	}
	if headerSize(r.Request) > headerLimit {
		return errHeaderTooLarge
	}
	if isSigning(r.Request) {
		s.mux.ServeHTTP(w, r.Request)
		return nil
	}
	if err := s.identify(r); err != nil {
		_, r.Pattern = s.mux.Handler(r.Request) // for the log and for metrics
		return err
	}
	if r.Method == http.MethodHead || !problem.PlainPath(r.Request) {
		return s.nothing(w, r)
	}
	inside := r.WithContext(caller.With(r.Context(), r.Caller))
	s.mux.ServeHTTP(w, inside)
	r.Pattern = inside.Pattern // for a handler around this server that counts
	return nil
}

// Guard returns h for callers who have a right to every name. It refuses other callers, and
// requests of web pages of other sites, as s does. It is for other handlers at the same address.
func (s *Server) Guard(right caller.Rights, h http.Handler) http.Handler {
	return s.house.Handle(func(w http.ResponseWriter, r *door.Request) error {
		if err := s.fromElsewhere(w, r.Request, s.callers != nil); err != nil {
			return err
		}
		if err := s.identify(r); err != nil {
			return err
		}
		if err := r.Need(right, ""); err != nil {
			return err
		}
		h.ServeHTTP(w, r.Request)
		return nil
	})
}

// FromHere returns h for all clients except web pages of other sites, which it refuses as s
// does without authentication. It is for an address that needs no authentication.
func (s *Server) FromHere(h http.Handler) http.Handler {
	return s.house.Handle(func(w http.ResponseWriter, r *door.Request) error {
		if err := s.fromElsewhere(w, r.Request, false); err != nil {
			return err
		}
		h.ServeHTTP(w, r.Request)
		return nil
	})
}

// resourcePolicy is the header that makes browsers hide a response from pages of other sites.
const resourcePolicy = "Cross-Origin-Resource-Policy"

func headerSize(r *http.Request) int {
	n := len(r.RequestURI)
	for key, values := range r.Header {
		for _, v := range values {
			n += len(key) + len(v)
		}
	}
	return n
}

var errHeaderTooLarge error = &door.Refusal{
	Status: http.StatusRequestHeaderFieldsTooLarge, Code: "header-too-large",
	Detail: "the header and the URL have more than 16 KiB together",
}

// fromElsewhere refuses requests that a web page of another site can make a browser send: to
// the server's name, or to a name of the site that resolves to the server. authenticated means
// that callers must authenticate. A page cannot do that under a name of its own site.
func (s *Server) fromElsewhere(w http.ResponseWriter, r *http.Request, authenticated bool) error {
	w.Header()[resourcePolicy] = []string{"same-origin"}
	if fromPage(r) {
		return &door.Refusal{Status: http.StatusForbidden, Code: "cross-site", Detail: "a web page of another site has sent this"}
	}
	if authenticated || caller.OverUnix(r) || s.answersTo(r.Host) {
		return nil
	}
	return &door.Refusal{
		Status: http.StatusMisdirectedRequest, Code: "wrong-host",
		Detail: fmt.Sprintf("this server is not known as %q, the Host of the request: use its address, or start it with --host", r.Host),
	}
}

// fromPage reports whether a page of another site has sent r. Reads are refused as well:
// they cost the server something, and the page may use the response.
func fromPage(r *http.Request) bool {
	if (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions) &&
		(r.Header["Sec-Fetch-Site"] != nil || r.Header["Origin"] != nil) {
		changing := *r
		changing.Method = http.MethodPost
		r = &changing
	}
	return browsers.Check(r) != nil
}

// answersTo reports whether host is an address, or a name of this server.
func (s *Server) answersTo(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return host == "localhost" || slices.ContainsFunc(s.hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// identify sets the caller of r.
func (s *Server) identify(r *door.Request) (err error) {
	if s.callers == nil {
		r.Caller = &everybody
		return nil
	}
	r.Caller, err = s.known(r)
	return err
}

// known returns the caller of r, by the token of its session if it has one.
func (s *Server) known(r *door.Request) (*caller.Caller, error) {
	shown, err := s.ofSession(r)
	if err != nil {
		return nil, err
	}
	inSession := shown != nil
	if !inSession {
		shown = r.Request
	}
	c, err := s.callers.Identify(shown)
	switch {
	case c != nil && err == nil:
		return c, nil
	case inSession && !errors.Is(err, caller.ErrUnavailable): // the token was revoked, or has expired
		return nil, sessionOver(r.Request)
	}
	return nil, unknownCaller(r, err)
}

// unknownCaller returns the refusal of a request without credentials, or with wrong ones.
func unknownCaller(r *door.Request, err error) error {
	if errors.Is(err, caller.ErrUnavailable) {
		r.House.Log.LogAttrs(r.Context(), slog.LevelWarn, "callers cannot be identified", slog.Any("error", err))
		return errCannotTell
	}
	refusal := &door.Refusal{
		Status: http.StatusUnauthorized, Code: "not-authenticated", Header: door.Challenge(err != nil),
		Detail: "the server does not know you: send Authorization: Bearer and a token that it knows",
	}
	if wrong, ok := errors.AsType[caller.Wrong](err); ok {
		refusal.Detail = "the server does not know you: " + wrong.Error()
	}
	return refusal
}

var errCannotTell error = &door.Refusal{
	Status: http.StatusServiceUnavailable, Code: "callers-unavailable", Again: 5 * time.Second,
	Detail: "the server cannot find out who you are, because it cannot reach who knows: ask again; nothing was done",
}
