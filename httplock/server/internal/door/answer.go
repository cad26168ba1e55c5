package door

import (
	"log/slog"
	"net/http"
	"time"
)

// patience is how long a client may take to read a response.
const patience = 30 * time.Second

// An answer is a response that knows whether it has begun. After that it cannot become a
// refusal.
type answer struct {
	http.ResponseWriter
	begun bool
}

func (a *answer) WriteHeader(status int) {
	a.begun = a.begun || status >= http.StatusOK
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush implements http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError is what http.ResponseController looks for.
func (a *answer) FlushError() error {
	a.begun = true
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Patience gives the client 30 s from now to read the response: a client that reads nothing
// must not block the writer of the response. A stream that may be silent for longer has
// a rule of its own.
func Patience(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // a test's recorder has no deadline
}

// give answers r with f. It is small because it stays on the stacks of all streams.
func (a *answer) give(r *Request, f Func) {
	defer a.caught(r)
	if err := f(a, r); err != nil {
		a.fail(r, err)
	}
}

// fail answers with an error.
func (a *answer) fail(r *Request, err error) {
	if !a.begun {
		Refuse(a, r, err)
		return
	}
	r.House.Log.LogAttrs(r.Context(), slog.LevelWarn, "an answer broke off", slog.String("request", r.Pattern), slog.String("code", RefusalOf(err).Code))
	panic(http.ErrAbortHandler) // net/http cuts the connection, so that no client takes the response for whole
}

// caught limits a panic to its request. The client does not learn where it happened, and the
// log does not show its value.
func (a *answer) caught(r *Request) {
	v := recover()
	switch v {
	case nil:
		return
	case http.ErrAbortHandler:
		panic(v)
	}
	r.House.panicked(r.Context(), r.Pattern, v)
	if a.begun {
		panic(http.ErrAbortHandler)
	}
	Refuse(a, r, ErrInternal)
}

// ErrInternal is the refusal of a request that has met a fault of the server.
var ErrInternal error = &Refusal{
	Status: http.StatusInternalServerError, Code: "internal",
	Detail: "a fault of the server: its log has more; the outcome is unknown",
}
