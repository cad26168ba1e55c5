package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/wire"
)

// sessionPath is where a browser learns who its caller is, and signs in and out.
const sessionPath = "/v1/session"

// signInBody is how many bytes the body of signIn may have. Any client can send one.
const signInBody = 16 << 10

func (s *Server) sessionRoutes() {
	s.mux.Handle("GET /v1/session", s.house.Handle(s.session))
	s.mux.Handle("POST /v1/session", s.house.Handle(s.signIn))
	s.mux.Handle("DELETE /v1/session", s.house.Handle(s.signOut))
}

// isSigning reports whether r signs in or out, which needs no authentication.
func isSigning(r *http.Request) bool {
	return (r.Method == http.MethodPost || r.Method == http.MethodDelete) && r.URL.EscapedPath() == sessionPath
}

// session answers GET /v1/session.
func (s *Server) session(w http.ResponseWriter, r *door.Request) error {
	c := r.Caller
	v := wire.Session{
		Caller: c.Name, Rights: strings.FieldsFunc(c.Rights.String(), func(r rune) bool { return r == ',' }),
		SignedIn: s.callers != nil && sealedToken(r.Request) != "", SignIn: s.callers != nil,
		Notice: s.notice, History: s.house.Features.Historian != nil, Actions: s.actions(c),
	}
	if !slices.Contains(c.Prefixes, "") {
		v.Prefixes = c.Prefixes
	}
	return door.Write(w, http.StatusOK, v)
}

// actions returns the actions on others' locks and keys that c may do through this server.
func (s *Server) actions(c *caller.Caller) []string {
	all, f := []string{}, &s.house.Features
	for _, a := range []struct {
		name string
		may  bool
	}{
		{"break", f.Breaker != nil && c.Rights.Has(caller.Break)},
		{"hold", c.Rights.Has(caller.Acquire)},
		{"release", c.Rights.Has(caller.Acquire) || c.Rights.Has(caller.Break)},
		{"forget", f.Recorder != nil && c.Rights.Has(caller.Once)},
	} {
		if a.may {
			all = append(all, a.name)
		}
	}
	return all
}

// signIn answers POST /v1/session. For a known token it sets a cookie that counts as that
// token.
func (s *Server) signIn(w http.ResponseWriter, r *door.Request) error {
	var want wire.SignIn
	if err := r.ReadUpTo(&want, signInBody); err != nil {
		return err
	}
	if s.callers == nil {
		return errNobodyAsked
	}
	if err := checkToken(want.Token); err != nil {
		return err
	}
	c, err := s.callers.Identify(withToken(r.Request, want.Token))
	if err != nil || c == nil {
		return unknownCaller(r, err)
	}
	ctx, cancel := r.Budgeted()
	defer cancel()
	sealed, err := s.seal(ctx, want.Token)
	if err != nil {
		return err
	}
	r.Caller = c
	r.Audit("sign-in")
	s.warnOfPlainHTTP(r)
	http.SetCookie(w, cookieOf(r.Request, sealed))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// signOut answers DELETE /v1/session for every client: the browser forgets its cookie.
func (s *Server) signOut(w http.ResponseWriter, r *door.Request) error {
	http.SetCookie(w, cookieOf(r.Request, ""))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

var errNobodyAsked error = &door.Refusal{
	Status: http.StatusNotImplemented, Code: "unsupported",
	Detail: "this server has no authentication, so there is nothing to sign in to: every client that reaches it may do everything",
}
