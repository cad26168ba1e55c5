package oncehttp

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/tell"
	"github.com/holdfast-locks/holdfast/observe"
)

// A Middleware makes handlers safe to repeat. It is safe for concurrent use,
// and may wrap several handlers.
type Middleware struct {
	client *holdfast.Client
	caller func(*http.Request) string
	opts   Options
	events tell.Queue // for the Observer
}

// New returns a middleware that keeps responses in the store of client, whose
// engine must implement driver.Recorder.
//
// Caller returns the sender of a request. Clients that it takes for the same caller can
// see each other's responses, so see the package's documentation. A request
// for which it returns nothing is refused with 403; a service that has one
// caller only, or no secrets, returns a constant.
//
// The error wraps holdfast.ErrInvalid.
func New(client *holdfast.Client, opts *Options, caller func(*http.Request) string) (*Middleware, error) {
	if client == nil || caller == nil {
		return nil, fmt.Errorf("oncehttp: %w argument: client and caller are needed", holdfast.ErrInvalid)
	}
	o, err := opts.resolve()
	if err != nil {
		return nil, err
	}
	m := &Middleware{client: client, caller: caller, opts: o}
	m.events.Init(o.Observer, nil)
	return m, nil
}

// Name returns the do-once key under which a response is kept, for
// Client.Records. It has a digest of the three, so that a user who can list names
// learns no keys.
func (m *Middleware) Name(caller, route, key string) string {
	return m.opts.Prefix + digest([]byte(caller), []byte(route), []byte(key))
}

// Wrap returns a handler that calls next at most once for each key, and
// answers repeats itself.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(m.opts.Methods, r.Method) {
			next.ServeHTTP(w, r)
			return
		}
		key, err := keyOf(r.Header)
		if errors.Is(err, errNoKey) && !m.opts.Required {
			next.ServeHTTP(w, r)
			return
		}
		x := exchange{Middleware: m, next: next, w: w, r: r}
		p, err := x.admit(key, err)
		if err != nil {
			x.refuse(p, err)
			return
		}
		x.serve()
	})
}

// An exchange is one request with a key, and its outcome.
type exchange struct {
	*Middleware
	next http.Handler
	w    http.ResponseWriter
	r    *http.Request
	body []byte

	key, route string
	name       string // of the do-once key

	recorder *recorder // set once the handler runs
}

// tell sends the outcome to the Observer, without waiting for it.
func (x *exchange) tell(e *observe.Event) {
	e.Context, e.Name = x.r.Context(), x.name
	x.events.Tell(e, false)
}

// serve lets the handler run, or answers without it.
func (x *exchange) serve() {
	result, err := x.client.Once(x.r.Context(), x.name, &holdfast.OnceOptions{
		TTL: x.opts.TTL, Retention: x.opts.Retention,
		Await:       x.opts.Await,
		Fingerprint: x.fingerprint(), Reason: printable(x.route), MaxResult: holdfast.MaxOnceResult,
	}, x.run)
	switch {
	case err == nil && result.Replayed:
		x.replay(result.Value)
	case x.recorder != nil:
		x.answer(err)
	default:
		x.refuse(storeProblem(err), err)
	}
}

// Why a response is not kept.
var (
	errNotFinal = errors.New("a response with this status is not kept")
	errSilent   = errors.New("the handler has not answered")
)

// run is the do-once work.
func (x *exchange) run(ctx context.Context, _ *holdfast.Lease) ([]byte, error) {
	x.recorder = newRecorder(x.w, x.opts.MaxBody)
	r := x.request(ctx)
	defer func() {
		if r.MultipartForm != nil {
			_ = r.MultipartForm.RemoveAll() // the server removes the files of x.r only
		}
	}()
	x.next.ServeHTTP(x.recorder, r)
	if x.recorder.status == 0 && ctx.Err() != nil {
		return nil, errors.Join(errSilent, context.Cause(ctx))
	}
	x.recorder.begin()
	if !x.opts.Keep(x.recorder.status) {
		return nil, errNotFinal
	}
	return x.recorder.response().encode(), nil
}

// answer sends the response of the handler that ran. err is why it is not
// kept, or nil.
func (x *exchange) answer(err error) {
	e := observe.Event{Kind: observe.RequestRan, Status: x.recorder.status, Kept: err == nil, Err: err}
	switch {
	case errors.Is(err, errNotFinal):
		e.Err = nil // as Options.Keep wants it
	case errors.Is(err, errSilent), errors.Is(err, holdfast.ErrLost) && !x.recorder.overflow:
		// Another request with this key may have run, with another response.
		x.refuse(interrupted, err)
		return
	case errors.Is(err, holdfast.ErrLost):
		x.tell(&e)
		panic(http.ErrAbortHandler) // the same, for a response that is under way
	}
	x.recorder.send()
	x.tell(&e)
}

// replay answers with a kept response.
func (x *exchange) replay(kept []byte) {
	response, err := parse(kept)
	switch {
	case !x.opts.Allow(x.r):
		p := refusal(http.StatusForbidden, "replay_not_allowed", "the request was carried out before, and you may not have its response; it is not carried out again")
		x.refuse(p, errNotAllowed)
	case err != nil:
		x.refuse(storeProblem(err), err)
	case response.Overflow:
		p := refusal(http.StatusGone, "response_not_kept", "the request was carried out before, and its response was too large to keep: it is not carried out again")
		p.ResponseStatus = response.Status
		x.refuse(p, errOverflow)
	default:
		response.send(x.w)
		x.tell(&observe.Event{Kind: observe.RequestReplayed, Status: response.Status})
	}
}

var errNotAllowed = errors.New("Options.Allow has refused it")

var errOverflow = errors.New("the response was too large to keep")

// digest returns a hash of the parts and their lengths, so that no two lists of parts have the
// same.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
