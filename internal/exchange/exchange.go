// Package exchange records the requests and responses of a handler in tests, so that a
// test of another module can compare them with the description of the API.
package exchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Directory is the environment variable that names the directory for Recorded. It must
// be an absolute path: tests run in the directories of their packages.
const Directory = "HOLDFAST_TEST_EXCHANGES"

// An Exchange is one request and its response.
type Exchange struct {
	Test     string // the test that made it
	Method   string
	URL      string
	Request  Message // as far as the handler has read it
	Status   int     // 0 if the handler did not respond
	Response Message
	Broken   bool // the handler panicked, perhaps in the middle of its response
}

// A Message is one half of an exchange.
type Message struct {
	Header http.Header // without Authorization
	Body   []byte
}

// Recorded returns a handler that does what h does, and writes each exchange as a file
// into the directory that the environment names. If it names none, Recorded returns h.
func Recorded(tb testing.TB, h http.Handler) http.Handler {
	tb.Helper()
	dir := os.Getenv(Directory)
	if dir == "" {
		return h
	}
	if !filepath.IsAbs(dir) {
		tb.Fatalf("exchange: %s is %q, want an absolute path", Directory, dir)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		record(w, r, h, tb.Name(), dir)
	})
}

// Read returns the exchanges of a directory.
func Read(dir string) ([]Exchange, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	all := make([]Exchange, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func record(w http.ResponseWriter, r *http.Request, h http.Handler, test, dir string) {
	header := r.Header.Clone()
	header.Del("Authorization")
	heard := &body{ReadCloser: r.Body}
	said := &writer{ResponseWriter: w}
	e := Exchange{Test: test, Method: r.Method, URL: r.URL.String(), Broken: true}
	defer func() { // deferred, because a handler ends a response in its middle by a panic
		e.Request = Message{header, heard.copied()}
		e.Status, e.Response = said.status, Message{said.header, said.body}
		if isAmongTheFirst(e) {
			write(dir, e)
		}
	}()
	request := r.WithContext(r.Context())
	request.Body = heard
	h.ServeHTTP(said, request)
	if said.status == 0 {
		said.begin(http.StatusOK)
	}
	e.Broken = false
}

// mostAlike is how many exchanges are recorded of one test, method, path and status. More would
// show nothing new.
const mostAlike = 100

var alike = struct {
	sync.Mutex
	counts map[string]int
}{counts: map[string]int{}}

func isAmongTheFirst(e Exchange) bool {
	test, _, _ := strings.Cut(e.Test, "/")
	path, _, _ := strings.Cut(e.URL, "?")
	what := fmt.Sprint(test, " ", e.Method, " ", path, " ", e.Status, " ", e.Broken)
	alike.Lock()
	defer alike.Unlock()
	alike.counts[what]++
	return alike.counts[what] <= mostAlike
}

// write panics on an error. The test may have ended, so write cannot fail it.
func write(dir string, e Exchange) {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	f, err := os.CreateTemp(dir, "*.part")
	if err != nil {
		panic(err)
	}
	_, err = f.Write(text)
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), f.Name()+".json")
	}
	if err != nil {
		panic(err)
	}
}

// A body keeps a copy of the part of a request that is read. It has a mutex, because a goroutine of
// the handler may go on reading after the handler has returned.
type body struct {
	io.ReadCloser
	mu   sync.Mutex
	copy bytes.Buffer
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.copy.Write(p[:n])
	return n, err
}

func (b *body) copied() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.copy.Bytes())
}

// A writer keeps a copy of the response.
type writer struct {
	http.ResponseWriter
	status int
	header http.Header
	body   []byte
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) begin(status int) {
	w.status, w.header = status, maps.Clone(w.Header())
}

func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.begin(http.StatusOK)
	}
	w.body = append(w.body, p...)
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *writer) Flush() {
	if w.status == 0 {
		w.begin(http.StatusOK)
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a writer that cannot flush is left alone
}
