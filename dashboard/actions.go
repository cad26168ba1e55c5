package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
)

const (
	bodyLimit = 128 << 10        // bytes of the body of an action, as the server has it
	bodyTime  = 10 * time.Second // how long it may take to come
)

// browsers refuses what a web page of another site makes a browser send. It has no state.
var browsers http.CrossOriginProtection

// gate passes on actions that Authorize allows. The path and the body of the request to the
// server are made from the action that was checked, so that both are the same.
func (d *Dashboard) gate(kind ActionKind, path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a := Action{Kind: kind}
		err := a.read(w, r)
		if err == nil {
			err = d.mayDo(r, a)
		}
		var no *refusal
		switch {
		case errors.As(err, &no):
			refuse(w, no.status, no.code, no.detail)
		case err != nil:
			refuse(w, http.StatusForbidden, "not-permitted", err.Error())
		default:
			d.serve(w, about(r, path, a.Name))
		}
	}
}

// about returns r for a path of the server with ~ in it, and the name for ~.
func about(r *http.Request, path, name string) *http.Request {
	other := *r
	other.URL = &url.URL{Path: path, RawQuery: url.Values{"name": {name}}.Encode()}
	return &other
}

// mayDo returns why somebody may not do it.
func (d *Dashboard) mayDo(r *http.Request, a Action) error {
	if d.opts.Authorize == nil {
		return errors.New("this page is for looking only: the program that it is part of allows no actions")
	}
	return d.opts.Authorize(r, a)
}

// A refusal is the response to an invalid request.
type refusal struct {
	status       int
	code, detail string
}

func (e *refusal) Error() string { return e.detail }

// read reads from r what is to be done.
func (a *Action) read(w http.ResponseWriter, r *http.Request) (err error) {
	if browsers.Check(r) != nil {
		return &refusal{http.StatusForbidden, "cross-site", "a web page of another site has sent this"}
	}
	if a.Name, err = server.PathName(r, "name"); err == nil {
		err = driver.CheckName(a.Name)
	}
	if err != nil {
		return &refusal{http.StatusBadRequest, "invalid", err.Error()}
	}
	if a.Kind == Forget {
		return nil
	}
	return a.readBody(w, r)
}

// readBody reads the body of r, and puts what it has read in its place.
func (a *Action) readBody(w http.ResponseWriter, r *http.Request) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &refusal{http.StatusUnsupportedMediaType, "not-json", "send the body as Content-Type: application/json"}
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // a recorder of a test has none
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	if err != nil {
		return badBody(err)
	}
	_ = control.SetReadDeadline(time.Time{})
	fields, err := fieldsOf(text)
	if err == nil {
		err = a.take(fields)
	}
	if err != nil {
		return &refusal{http.StatusBadRequest, "malformed-json", "the body is not what is expected: " + err.Error()}
	}
	text, err = json.Marshal(fields)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return nil
}

// take notes the fields that Authorize sees.
func (a *Action) take(fields map[string]json.RawMessage) error {
	for name, to := range map[string]any{"fencing_token": &a.Token, "reason": &a.Reason} {
		if value, said := fields[name]; said {
			if err := json.Unmarshal(value, to); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if _, said := fields["older"]; said {
		return errors.New("older: a page takes away the lease that was seen, and no other")
	}
	return nil
}

// fieldsOf returns the fields of a JSON object, none of which may occur twice.
func fieldsOf(text []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil, errors.New("want an object")
	}
	fields := map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		key := name.(string) // the decoder takes nothing else in its place
		if _, twice := fields[key]; twice {
			return nil, fmt.Errorf("%q is given twice", key)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		fields[key] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind it")
	}
	return fields, nil
}

func badBody(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &refusal{http.StatusRequestEntityTooLarge, "body-too-large", "the body is too large"}
	}
	return &refusal{http.StatusBadRequest, "body-unreadable", "the body broke off, or did not come in time"}
}
