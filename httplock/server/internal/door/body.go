package door

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
)

// BodyLimit is how many bytes of a body Read takes.
const BodyLimit = 128 << 10

// Read reads the body of r, which must be one JSON value of the type of v and nothing
// else, without a field that v lacks, and have no more than BodyLimit bytes.
func (r *Request) Read(v any) error { return r.ReadUpTo(v, BodyLimit) }

// ReadUpTo does as Read, for a body that may be of another length.
func (r *Request) ReadUpTo(v any, limit int64) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return &Refusal{Status: http.StatusUnsupportedMediaType, Code: "not-json", Detail: "send the body as Content-Type: application/json"}
	}
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, limit))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return badBody(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badBody(errors.New("there is more behind the value"))
	}
	return nil
}

func badBody(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &Refusal{Status: http.StatusRequestEntityTooLarge, Code: "body-too-large", Detail: "the body is too large"}
	}
	return &Refusal{Status: http.StatusBadRequest, Code: "malformed-json", Detail: "the body is not what is expected: " + err.Error()}
}

// Write answers with v as JSON.
func Write(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a caller that is gone needs no answer
	return nil
}
