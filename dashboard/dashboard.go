package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/problem"
)

// Options configure New and Handler. A zero field is default.
type Options struct {
	// Engine has the locks that are shown. Required. It must be open for as long as the
	// page is. The page does not close it.
	Engine driver.Engine

	// Authorize decides about each action; nil allows none. The user sees the text of its
	// error. A user who may see the page may still lack the right to an action.
	Authorize func(*http.Request, Action) error

	// Viewer returns the name of the user of a request, as the author of actions. It must
	// be valid as the name of a lock. Default, and if it returns "": "dashboard".
	Viewer func(*http.Request) string

	// Logger receives refusals and actions. Default: slog.Default.
	Logger *slog.Logger
}

// An Action is what a user wants to do to a lock or a do-once key.
type Action struct {
	Kind   ActionKind
	Name   string // of the lock, or the do-once key
	Token  uint64 // of Break and Release: the lease that the user saw
	Reason string // of Break and Hold; it may be empty
}

// An ActionKind is the kind of an action.
type ActionKind string

// The actions.
const (
	Break   ActionKind = "break"   // take a lock away
	Hold    ActionKind = "hold"    // hold a lock for a person
	Release ActionKind = "release" // release such a hold
	Forget  ActionKind = "forget"  // forget the result of a do-once key
)

// A Dashboard is the page for the locks of one engine, with the API that it needs. It is an
// http.Handler. Use New to make one.
type Dashboard struct {
	opts  Options
	locks *server.Server
	paths *http.ServeMux // the allowed paths below locks
	page  http.Handler
}

// New returns the page for the locks of an engine. New sends no request, but the page receives
// the events of a store that keeps history. The caller should close the page before the engine.
//
// It answers below the root: a program that mounts it under a prefix removes the prefix with
// http.StripPrefix. Its users may see everything about every lock: put the program's own
// middleware in front of it.
func New(opts *Options) (*Dashboard, error) {
	d := &Dashboard{opts: *cmp.Or(opts, &Options{})}
	var err error
	d.locks, err = server.New(d.opts.Engine, &server.Options{Callers: viewers{d}, Logger: d.opts.Logger})
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	d.paths = d.routes()
	d.page = Page(http.HandlerFunc(d.api))
	return d, nil
}

// Handler is New for a program whose page lives as long as its engine. It panics if the
// options are wrong, which is a mistake in the program: there is no engine, or one that
// lacks a declared feature.
//
// A page that is open in a browser receives events through a request that does not end, and
// http.Server.Shutdown waits for it. If the program calls Shutdown, use New, and pass Close to
// http.Server.RegisterOnShutdown.
func Handler(opts *Options) http.Handler {
	d, err := New(opts)
	if err != nil {
		panic(err)
	}
	return d
}

// Close ends the page's open requests and its work in the background. It does not close
// the engine.
func (d *Dashboard) Close(ctx context.Context) error { return d.locks.Close(ctx) }

// ServeHTTP implements http.Handler.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "" && !strings.HasSuffix(r.RequestURI, "/"):
		toFolder(w, r)
	case !strings.HasPrefix(r.URL.Path, "/"): // StripPrefix removed the slash with the prefix
		d.page.ServeHTTP(w, rooted(r))
	default:
		d.page.ServeHTTP(w, r)
	}
}

// rooted returns r with a path that begins with a slash.
func rooted(r *http.Request) *http.Request {
	at := *r.URL
	at.Path = "/" + at.Path
	if at.RawPath != "" {
		at.RawPath = "/" + at.RawPath
	}
	other := *r
	other.URL = &at
	return &other
}

// routes returns the paths of the API that the page needs.
func (d *Dashboard) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, read := range []string{
		"GET /v1/locks", "GET /v1/locks/{name}", "GET /v1/locks/{name}/history", "POST /v1/locks/look",
		"GET /v1/once", "GET /v1/onetime", "GET /v1/stats", "GET /v1/store", "GET /v1/events",
		"POST /v1/locks/{name}/break", "POST /v1/locks/{name}/hold", "POST /v1/locks/{name}/hold/release", "DELETE /v1/once/{name}",
	} {
		mux.HandleFunc(read, d.serve)
	}
	mux.HandleFunc("GET /v1/session", d.session)
	return mux
}

// api answers requests for anything but the files of the page.
func (d *Dashboard) api(w http.ResponseWriter, r *http.Request) {
	setSafe(w.Header())
	if _, pattern := d.paths.Handler(r); pattern != "" && problem.PlainPath(r) {
		d.paths.ServeHTTP(w, r)
		return
	}
	if allowed := problem.Methods(d.paths, r); len(allowed) > 0 {
		refuseMethod(w, strings.Join(allowed, ", "))
		return
	}
	refuse(w, http.StatusNotFound, "not-found", "there is nothing at this path")
}

// serve lets the server answer r on behalf of its user. It removes the cookies: a browser sends
// those of all ports of a host, and the server would take the cookie of another holdfast serve
// for a session of its own.
func (d *Dashboard) serve(w http.ResponseWriter, r *http.Request) {
	other := r.WithContext(context.WithValue(r.Context(), requestKey{}, r))
	if r.Header["Cookie"] != nil {
		other.Header = r.Header.Clone()
		other.Header.Del("Cookie")
	}
	d.locks.ServeHTTP(w, other)
}

// requestKey is the key of the user's request in a context.
type requestKey struct{}

// viewers identifies all users of the page to the server: each may look, and Authorize decides
// about actions.
type viewers struct{ *Dashboard }

// Identify implements caller.Source.
func (v viewers) Identify(r *http.Request) (*caller.Caller, error) {
	asked := r.Context().Value(requestKey{}).(*http.Request) // serve has set it
	name := v.viewer(asked)
	if err := driver.CheckName(name); err != nil {
		return nil, caller.Wrong("the program does not say by what name: " + err.Error())
	}
	return &caller.Caller{
		Name: name, Rights: caller.All &^ caller.Admin,
		Authorize: func(a caller.Action) error { return v.mayDo(asked, a) },
	}, nil
}

// mayDo returns an error unless the user of r may do a.
func (d *Dashboard) mayDo(r *http.Request, a caller.Action) error {
	switch {
	case a.Older:
		return errors.New("older: a page breaks the lease that was seen, and no other")
	case d.opts.Authorize == nil:
		return errors.New("this page is for looking only: the program that it is part of allows no actions")
	}
	return d.opts.Authorize(r, Action{Kind: ActionKind(a.Kind), Name: a.Name, Token: a.Token, Reason: a.Reason})
}

func (d *Dashboard) viewer(r *http.Request) string {
	if d.opts.Viewer == nil {
		return anonymous
	}
	return cmp.Or(d.opts.Viewer(r), anonymous)
}

// anonymous is the author without a Viewer.
const anonymous = "dashboard"
