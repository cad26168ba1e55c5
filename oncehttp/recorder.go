package oncehttp

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-locks/holdfast/internal/header"
)

// A recorder is the http.ResponseWriter of the handler. It holds the response
// back until send, or until the body outgrows the limit. It deliberately has
// no Flush, Hijack or Unwrap.
type recorder struct {
	to    http.ResponseWriter
	limit int
	outer http.Header // the header before the handler began

	header   http.Header // the handler's, to be changed until WriteHeader
	status   int         // 0 until WriteHeader
	final    http.Header // as of WriteHeader
	body     []byte
	overflow bool // the response is being sent
}

func newRecorder(to http.ResponseWriter, limit int) *recorder {
	return &recorder{to: to, limit: limit, outer: to.Header().Clone(), header: to.Header().Clone()}
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. Informational responses are
// dropped, as is a second status.
func (w *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("oncehttp: invalid status %d", status)) // as net/http does
	}
	if w.status != 0 || status < 200 && status != http.StatusSwitchingProtocols {
		return
	}
	w.status, w.final = status, w.header.Clone()
	maps.DeleteFunc(w.final, func(name string, _ []string) bool {
		return name == "Trailer" || strings.HasPrefix(name, http.TrailerPrefix)
	})
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(p []byte) (int, error) {
	w.begin()
	if w.status < 200 || w.status == http.StatusNoContent || w.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	if !w.overflow && len(w.body)+len(p) > w.limit {
		w.send()
		w.overflow, w.body = true, nil
	}
	if w.overflow {
		return w.to.Write(p)
	}
	w.body = append(w.body, p...)
	return len(p), nil
}

// begin sets the status 200 if the handler has written, or returned, without a status.
func (w *recorder) begin() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
}

// send sends the response that was held back. A client that is gone needs none.
func (w *recorder) send() {
	if w.overflow {
		return
	}
	h := w.to.Header()
	clear(h)
	maps.Copy(h, w.final)
	w.to.WriteHeader(w.status)
	if len(w.body) > 0 {
		_, _ = w.to.Write(w.body)
	}
}

// response returns the response to keep.
func (w *recorder) response() response {
	return response{Status: w.status, Header: changes(w.outer, w.final), Overflow: w.overflow, body: w.body}
}

// changes returns the changes of a handler to the header: the fields that it
// set, and with nil the fields that it deleted. Fields that outer handlers set
// are not kept, because they set them again for a repeat.
func changes(before, after http.Header) map[string][][]byte {
	kept := map[string][][]byte{}
	drop := dropped(after)
	for name, values := range after {
		was, there := before[name]
		if drop[http.CanonicalHeaderKey(name)] || there && slices.Equal(was, values) {
			continue
		}
		kept[name] = [][]byte{}
		for _, v := range values {
			kept[name] = append(kept[name], []byte(v))
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			kept[name] = nil
		}
	}
	return kept
}

// dropped returns the fields that are not kept: fields of one connection only
// (RFC 9110, section 7.6.1), the date, and the cookies of the first response.
func dropped(h http.Header) map[string]bool {
	drop := map[string]bool{
		"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true, "Transfer-Encoding": true, "Upgrade": true,
		"Proxy-Authenticate": true, "Proxy-Authorization": true,
		"Date": true, "Set-Cookie": true, ReplayedHeader: true,
	}
	for name := range header.List(h, "Connection") {
		drop[http.CanonicalHeaderKey(name)] = true
	}
	return drop
}
