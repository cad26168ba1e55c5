package httplock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/wire"
)

// call sends one request, and returns the reply and the server that sent it. If a server has
// certainly done nothing, because it cannot be reached or is about to stop, call tries the
// next.
//
// INVARIANT I10: the error is definite only if nothing was written, or if the server said so.
// After a truncated reply, and after a proxy's reply other than 429, the outcome is unknown.
func call[Reply any](ctx context.Context, e *engine, method string, req any) (reply Reply, at *server, err error) {
	body, err := json.Marshal(req)
	if err != nil {
		return reply, nil, fmt.Errorf("%w request: %w", driver.ErrInvalid, err)
	}
	ctx, cancel, err := e.budgeted(ctx)
	if err != nil {
		return reply, nil, err
	}
	defer cancel()
	for range e.servers {
		at = e.chosen()
		var again bool
		if again, err = e.ask(ctx, at, method, body, &reply); !again || !e.avoid(at) {
			break
		}
	}
	return reply, at, err
}

// budgeted returns a context that ends when the request has used up form.Budget. All hops of
// a request share the budget.
func (e *engine) budgeted(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if e.life.Err() != nil {
		return nil, nil, errClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= form.Budget {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, form.Budget, errNoAnswer)
	return ctx, cancel, nil
}

var errNoAnswer = fmt.Errorf("no answer within %s", form.Budget)

// The server gives up before the caller does: by a sixteenth of the time that is left, 100 ms
// at most. So its reply, an unknown outcome with a reason, arrives before the caller times out.
const (
	wayBack     = 16
	wayBackMost = 100 * time.Millisecond
)

// remaining returns the milliseconds that are left for a request, or "" if ctx has no deadline.
func remaining(ctx context.Context) (string, error) {
	end, ok := ctx.Deadline()
	if !ok {
		return "", nil
	}
	left := time.Until(end)
	if left <= 0 {
		return "", context.DeadlineExceeded
	}
	left -= min(left/wayBack, wayBackMost)
	return strconv.FormatInt(max(left.Milliseconds(), 1), 10), nil
}

// request makes a request for the transport. The transport may retry it if the server closed
// the connection before the first byte.
func (e *engine) request(ctx context.Context, at *server, method, left string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.url.String()+form.Base+method, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = at.header.Clone()
	r.Header[form.Client] = []string{e.id}
	if left != "" {
		r.Header[form.Timeout] = []string{left}
	}
	return r, nil
}

// send sends a request to one server. again reports that this server has done nothing, so that
// the next may get the request. stream means that the reply may be of any length.
func (e *engine) send(ctx context.Context, at *server, method string, body []byte, stream bool) (response *http.Response, again bool, err error) {
	left, err := remaining(ctx)
	switch {
	case err != nil:
		return nil, false, err
	case !stream && at.talker.talks(body):
		response, err = at.talker.say(ctx, saying{at: at, method: method, client: e.id, left: left, body: body})
	default:
		var r *http.Request
		if r, err = e.request(ctx, at, method, left, body); err != nil {
			return nil, false, err
		}
		response, err = at.talker.transport.RoundTrip(r)
	}
	if err != nil {
		again, err = e.unsent(ctx, at, err)
	}
	return response, again, err
}

// ask does as send, for a short reply, and reads it.
func (e *engine) ask(ctx context.Context, at *server, method string, body []byte, reply any) (again bool, err error) {
	response, again, err := e.send(ctx, at, method, body, false)
	if err != nil {
		return again, err
	}
	defer func() { _ = response.Body.Close() }()
	text := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(text)
	text.Reset()
	if _, err := text.ReadFrom(io.LimitReader(response.Body, longestReply)); err != nil {
		_, err = e.unsent(ctx, at, fmt.Errorf("the answer was cut off: %w", err))
		return false, err
	}
	return e.read(at, response, text.Bytes(), reply)
}

// longestReply is enough for the longest record in JSON.
const longestReply = 64 << 20

// buffers are for replies. Decoded values share no memory with them.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// unsent returns the error of a request without a reply. again reports that the request was
// certainly not sent.
func (e *engine) unsent(ctx context.Context, at *server, err error) (again bool, _ error) {
	dial, isNet := errors.AsType[*net.OpError](err)
	switch {
	case e.life.Err() != nil:
		return false, fmt.Errorf("the engine was closed before the answer came")
	case errors.As(err, new(*connectError)), isNet && dial.Op == "dial":
		return true, fmt.Errorf("%w: no connection to %s: %w", driver.ErrUnavailable, at.name, err)
	case ctx.Err() != nil:
		if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
			e.avoid(at) // the server had time to reply, if only that the outcome is unknown
		}
		if context.Cause(ctx) == errNoAnswer {
			return false, errNoAnswer
		}
		return false, ctx.Err()
	}
	e.avoid(at)
	return false, fmt.Errorf("no answer of %s: %w", at.name, err)
}

// read reads a reply or a refusal.
func (e *engine) read(at *server, response *http.Response, text []byte, reply any) (again bool, err error) {
	kind := kindOf(response)
	switch {
	case response.StatusCode == http.StatusOK && kind == form.JSON:
		return false, at.decode(text, reply)
	case kind == form.Problem:
		return refusal(at, response, text)
	}
	return false, e.foreign(at, response)
}

// decode decodes what a server has sent. An unreadable reply is an unknown outcome, so the error
// does not wrap its cause (INVARIANT I10).
func (s *server) decode(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s sent a reply that cannot be read: %v", s.name, err) //nolint:errorlint // see above
	}
	return nil
}

// kindOf returns the kind of body that a response has.
func kindOf(response *http.Response) string {
	kind := response.Header.Get("Content-Type")
	if kind == form.JSON { // the usual case
		return kind
	}
	kind, _, _ = mime.ParseMediaType(kind)
	return kind
}

// refusal returns the error of a problem. again reports that another server may get the request.
func refusal(at *server, response *http.Response, text []byte) (again bool, err error) {
	var p wire.Problem
	if err := at.decode(text, &p); err != nil {
		return false, err
	}
	p.Status = response.StatusCode
	return p.Code == "draining" || p.Code == "closed", form.Refused(p)
}

// foreign returns the error for a response that no holdfast server sends.
func (e *engine) foreign(at *server, response *http.Response) error {
	if response.StatusCode == http.StatusTooManyRequests {
		return fmt.Errorf("%w: %s answers 429: there are too many requests", driver.ErrUnavailable, at.name)
	}
	e.avoid(at)
	return fmt.Errorf("%s answers %s, which is not an answer of holdfast: is it a holdfast server, or is a proxy in between?", at.name, response.Status)
}
