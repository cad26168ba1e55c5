package door

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
	"github.com/holdfast-locks/holdfast/internal/header"
)

// BodyLimit is how many bytes a body for Read may have.
const BodyLimit = 128 << 10

// BodyTime is how long a caller may take to send a body.
const BodyTime = 10 * time.Second

// Read decodes the body of r into v, as package strict does. The body must be one JSON value
// of at most BodyLimit bytes.
func (r *Request) Read(v any) error { return r.ReadUpTo(v, BodyLimit) }

// ReadUpTo does as Read, with another limit.
func (r *Request) ReadUpTo(v any, limit int64) error { return r.ReadAbout(v, limit, nil) }

// ReadAbout does as ReadUpTo. A body of more than BodyLimit must have a Content-Length, and
// begin with the field name. may checks that name before the rest is read.
func (r *Request) ReadAbout(v any, limit int64, may func(name string) error) error {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" { // the usual case
		if kind, _, err := mime.ParseMediaType(kind); err != nil || kind != "application/json" {
			return errNotJSON
		}
	}
	switch {
	case r.ContentLength < 0 && may != nil:
		limit = min(limit, BodyLimit)
	case r.ContentLength > limit:
		return badBody(&http.MaxBytesError{Limit: limit})
	}
	if err := r.count(max(0, r.ContentLength)); err != nil { // before anything is read
		return err
	}
	source := io.Reader(r.Body)
	if may != nil && r.ContentLength > BodyLimit {
		begin := bufio.NewReaderSize(r.Body, beginning)
		name, err := beginsWith(begin)
		if err == nil {
			err = may(name)
		}
		if err != nil {
			return err
		}
		source = begin
	}
	body, err := r.body(source, limit)
	if err != nil {
		return badBody(err)
	}
	SetBodyTime(r.answer, time.Time{})
	if err := r.House.Shapes.Unmarshal(body, v); err != nil {
		return &Refusal{Status: http.StatusBadRequest, Code: "malformed-json", Detail: "the body is not what is expected: " + err.Error()}
	}
	return nil
}

// body reads the body into a buffer of its Content-Length. Without a Content-Length, it
// counts the bytes of the buffer before it allocates them.
func (r *Request) body(source io.Reader, limit int64) ([]byte, error) {
	switch {
	case r.Body == http.NoBody:
		return nil, nil
	case r.ContentLength > 0:
		body := make([]byte, r.ContentLength)
		_, err := io.ReadFull(source, body)
		return body, err
	}
	rest := http.MaxBytesReader(r.answer, r.Body, limit)
	var body []byte
	for {
		if len(body) == cap(body) {
			more := max(bodyStep, int64(cap(body))) // twice as much: the old buffer stays until it is copied
			if err := r.count(more); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, int64(cap(body))+more), body...)
		}
		n, err := rest.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case err == io.EOF:
			return body, nil
		case err != nil:
			return nil, err
		}
	}
}

// beginning is how many bytes at the start of a long body must contain its name.
const beginning = 4 << 10

// beginsWith returns the name that a JSON object begins with.
func beginsWith(source *bufio.Reader) (string, error) {
	text, err := source.Peek(beginning)
	if err != nil {
		return "", badBody(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	var begin [3]json.Token
	for i := range begin {
		if begin[i], err = d.Token(); err != nil {
			return "", errNoName
		}
	}
	name, ok := begin[2].(string)
	if !ok || begin[0] != json.Delim('{') || begin[1] != "name" {
		return "", errNoName
	}
	return name, nil
}

var errNoName error = &Refusal{
	Status: http.StatusBadRequest, Code: "malformed-json",
	Detail: "the body is not what is expected: one of more than 128 KiB begins with the field name",
}

// bodyStep is the first size of the buffer for a body without a Content-Length.
const bodyStep = 4 << 10

// count counts n more bytes of the body against the limits of the caller. It does not count
// bodies of unknown callers, which are short.
func (r *Request) count(n int64) error {
	if r.Caller == nil {
		return nil
	}
	if err := r.House.Limits.Body(r.Caller, n); err != nil {
		return err
	}
	r.counted += n
	return nil
}

// BodyDone stops counting the body. The handler of a long request calls it when it no longer
// uses the body. Handle calls it at the end of each request.
func (r *Request) BodyDone() {
	r.House.Limits.BodyDone(r.Caller, r.counted)
	r.counted = 0
}

// SetBodyTime sets the deadline of the body. It also bounds a request that is refused
// unread, because net/http reads the rest of a body first. After the body the deadline is
// removed: from then on a read only detects that the client disconnects.
func SetBodyTime(w http.ResponseWriter, until time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(until) // a test's recorder has no deadline
}

var errNotJSON error = &Refusal{
	Status: http.StatusUnsupportedMediaType, Code: "not-json",
	Detail: "send the body as Content-Type: application/json",
}

func badBody(err error) error {
	switch {
	case errors.As(err, new(*limit.Exceeded)):
		return err
	case errors.As(err, new(*http.MaxBytesError)):
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
	send(w, status, append(body, '\n'))
	return nil
}

// WriteLong answers with v, which may be long, compressed for clients that accept it.
func WriteLong(w http.ResponseWriter, r *Request, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	body = append(body, '\n')
	w.Header().Add("Vary", "Accept-Encoding")
	if len(body) > worthwhile && header.TakesGzip(r.Header) {
		var short bytes.Buffer
		zip := gzip.NewWriter(&short)
		_, _ = zip.Write(body) // to memory
		_ = zip.Close()
		body = short.Bytes()
		w.Header().Set("Content-Encoding", "gzip")
	}
	send(w, http.StatusOK, body)
	return nil
}

// worthwhile is the size in bytes above which a response is compressed: a smaller one fits into one
// packet.
const worthwhile = 1400

func send(w http.ResponseWriter, status int, body []byte) {
	Patience(w)
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = []string{"application/json"}, []string{"no-store"}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}
