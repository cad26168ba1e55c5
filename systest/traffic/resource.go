package traffic

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/httpfence"
	"github.com/holdfast-locks/holdfast/systest/check"
)

// A Resource is an HTTP service that checks fencing tokens, and logs which claims it accepts and
// refuses.
type Resource struct {
	URL string // of the service; the path is the name of the resource
	Log check.Writes
}

// NewGate returns a gate that has accepted no token.
func NewGate(t testing.TB) *fence.Gate {
	t.Helper()
	gate, err := fence.NewGate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

// NewResource starts a Resource. It ends with the test.
func NewResource(t testing.TB) *Resource {
	t.Helper()
	r := &Resource{}
	// The gate admits one request at a time for each resource, so accepted requests are logged in
	// the order of their acceptance.
	accept := http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { r.note(q, true) })
	guarded := httpfence.NewHandler(accept, NewGate(t).Marks(), nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		seen := &statusWriter{ResponseWriter: w}
		guarded.ServeHTTP(seen, q)
		if seen.status == http.StatusPreconditionFailed {
			r.note(q, false)
		}
	}))
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

func (r *Resource) note(q *http.Request, accepted bool) {
	c, err := httpfence.ParseHeader(q.Header.Get(httpfence.Header))
	if err != nil {
		return // the handler has refused the request
	}
	r.Log.Note(check.Write{Resource: q.URL.Path, LeaseID: string(c.ID()), Token: c.Token(), Accepted: accepted})
}

// A statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// write sends a claim to a resource, and reports whether it was accepted.
func write(client *http.Client, url, name string, c fence.Claim) (accepted bool, err error) {
	q, err := http.NewRequest(http.MethodPost, url+"/"+name, strings.NewReader(""))
	if err != nil {
		return false, err
	}
	q.Header.Set(httpfence.Header, httpfence.FormatHeader(c))
	answer, err := client.Do(q)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return false, err
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusPreconditionFailed:
		return false, nil
	}
	return false, fmt.Errorf("the resource answers %s", answer.Status)
}
