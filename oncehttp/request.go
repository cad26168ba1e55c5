package oncehttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/holdfast-locks/holdfast/wire"
)

var (
	errNoCaller = errors.New("the caller is not known")
	errTooLarge = errors.New("the request's body is too large")
)

// admit checks a request and reads its body. err is the error of its key. If admit refuses
// the request, it returns an error, and the problem to answer with.
func (x *exchange) admit(key string, err error) (wire.Problem, error) {
	switch {
	case errors.Is(err, errNoKey):
		return refusal(http.StatusBadRequest, "key_missing", "this request needs the header "+Header+" with a new random key, which is the same when it is repeated"), err
	case err != nil:
		return refusal(http.StatusBadRequest, "key_malformed", err.Error()), err
	}
	caller := x.caller(x.r)
	if caller == "" {
		return refusal(http.StatusForbidden, "caller_unknown", "a request with "+Header+" must say who sends it"), errNoCaller
	}
	x.key, x.route = key, x.opts.Route(x.r)
	x.name = x.Name(caller, x.route, key)
	return x.read()
}

// read reads the body, up to Options.MaxRequest.
func (x *exchange) read() (wire.Problem, error) {
	large := refusal(http.StatusRequestEntityTooLarge, "body_too_large", fmt.Sprintf("the body of a request with %s may have %d bytes", Header, x.opts.MaxRequest))
	if x.r.ContentLength > x.opts.MaxRequest {
		return large, errTooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, x.opts.MaxRequest))
	switch {
	case errors.As(err, new(*http.MaxBytesError)): // our limit, or an outer handler's
		return large, errTooLarge
	case err != nil:
		return refusal(http.StatusBadRequest, "body_unreadable", "the body of the request did not arrive as a whole"), err
	}
	x.body = body
	return wire.Problem{}, nil
}

// fingerprint returns a hash that distinguishes requests with the same key. The key is part of
// it, so that a reader of the store cannot confirm a guess of the body.
func (x *exchange) fingerprint() string {
	parts := [][]byte{[]byte(x.key), []byte(x.r.Method), []byte(strings.ToLower(x.r.Host)), []byte(x.r.URL.EscapedPath()), []byte(x.r.URL.RawQuery), x.body}
	for _, name := range x.opts.Vary {
		values := x.r.Header[name]
		parts = append(parts, []byte(strconv.Itoa(len(values))))
		for _, v := range values {
			parts = append(parts, []byte(v))
		}
	}
	if x.r.PostForm != nil { // an outer handler has read the body
		parts = append(parts, []byte(x.r.PostForm.Encode()))
	}
	return digest(parts...)
}

// request returns the handler's request, whose body can be read again.
func (x *exchange) request(ctx context.Context) *http.Request {
	r := x.r.WithContext(ctx)
	r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, int64(len(x.body)), nil
	if len(x.body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(x.body))
	}
	return r
}

// route is the default of Options.Route.
func route(r *http.Request) string {
	if r.Pattern != "" {
		return r.Pattern
	}
	return r.Method + " " + r.URL.EscapedPath()
}

// printable returns the beginning of s as valid text, to be shown with the lease.
func printable(s string) string {
	const longest = 200
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
	return strings.ToValidUTF8(s[:min(len(s), longest)], "")
}
