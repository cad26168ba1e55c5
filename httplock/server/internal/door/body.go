package door

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"
)

// BodyLimit is how many bytes of a body Read takes.
const BodyLimit = 128 << 10

// BodyTime is how long a caller may take to send a body.
const BodyTime = 10 * time.Second

// Read reads the body of r, which must be one JSON value of the type of v and nothing
// else, as package strict has it, and have no more than BodyLimit bytes.
func (r *Request) Read(v any) error { return r.ReadUpTo(v, BodyLimit) }

// ReadUpTo does as Read, for a body that may be of another length.
func (r *Request) ReadUpTo(v any, limit int64) error {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" { // which it mostly is
		if kind, _, err := mime.ParseMediaType(kind); err != nil || kind != "application/json" {
			return errNotJSON
		}
	}
	body, err := r.body(limit)
	if err != nil {
		return badBody(err)
	}
	SetBodyTime(r.answer, time.Time{})
	if err := r.House.Shapes.Unmarshal(body, v); err != nil {
		return &Refusal{Status: http.StatusBadRequest, Code: "malformed-json", Detail: "the body is not what is expected: " + err.Error()}
	}
	return nil
}

// body reads the body. The length that the caller says, if it does, is that of the buffer.
func (r *Request) body(limit int64) ([]byte, error) {
	if r.ContentLength <= 0 || r.ContentLength > limit {
		return io.ReadAll(http.MaxBytesReader(r.answer, r.Body, limit))
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	return body, err
}

// SetBodyTime says until when the body must have come. A request that is refused before
// it is read is bound by it as well: net/http reads what is left of a body first. Once it
// has been read, what is read is the caller's hanging up, which may come at any time.
func SetBodyTime(w http.ResponseWriter, until time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(until) // a recorder of a test has none
}

var errNotJSON error = &Refusal{
	Status: http.StatusUnsupportedMediaType, Code: "not-json",
	Detail: "send the body as Content-Type: application/json",
}

func badBody(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &Refusal{Status: http.StatusRequestEntityTooLarge, Code: "body-too-large", Detail: "the body is too large"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Refusal{Status: http.StatusRequestTimeout, Code: "body-too-slow", Detail: "the body did not come within " + BodyTime.String()}
	}
	return &Refusal{Status: http.StatusBadRequest, Code: "body-unreadable", Detail: "the body broke off"}
}

// Write answers with v as JSON.
func Write(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	Patience(w)
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = []string{"application/json"}, []string{"no-store"}
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a caller that is gone needs no answer
	return nil
}
