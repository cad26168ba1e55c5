package oncehttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/oncehttp"
)

// onceValue returns do-once work that returns value.
func onceValue(value string) func(context.Context, *holdfast.Lease) ([]byte, error) {
	return func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte(value), nil }
}

// TestHandlerGetsTheRequest checks that the handler can read the body and header of the request as
// without the middleware.
func TestHandlerGetsTheRequest(t *testing.T) {
	every := string(bytes.Repeat([]byte{0, 255, '\n', 'x'}, 1000))
	s := newService(t, nil, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Body.Close() != nil {
			t.Error(err)
		}
		if r.ContentLength != int64(len(body)) || len(r.TransferEncoding) != 0 || r.Host == "" || r.RemoteAddr == "" || r.Header.Get("X-Field") != "1" {
			t.Errorf("%+v", r)
		}
		w.Write(body)
	})
	server := httptest.NewServer(s)
	defer server.Close()
	for _, body := range []string{"", "x", every} {
		for _, chunked := range []bool{false, true} {
			r := outgoing(t, "POST", server.URL+"/payments?"+caseKey(body, chunked), body)
			r.Header.Set(oncehttp.Header, caseKey(body, chunked))
			r.Header.Set("X-Field", "1")
			if chunked {
				r.ContentLength, r.Body = -1, io.NopCloser(strings.NewReader(body))
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := received(t, response); got.status != 200 || got.body != body {
				t.Errorf("%d with %d bytes, want %d", got.status, len(got.body), len(body))
			}
		}
	}
	s.wantRuns(6)
}

// caseKey returns the key of a case of TestHandlerGetsTheRequest.
func caseKey(body string, chunked bool) string {
	if chunked {
		return "chunked-" + string(rune('a'+len(body)%26))
	}
	return "whole-" + string(rune('a'+len(body)%26))
}

func TestLargeRequests(t *testing.T) {
	s := newService(t, &oncehttp.Options{MaxRequest: 1000}, created())
	for size, accepted := range map[int]bool{0: true, 1000: true, 1001: false, 100_000: false} {
		for _, length := range []int64{int64(size), -1} {
			r := request("POST", "/payments", "", oncehttp.Header, "key-"+strings.Repeat("i", size%7)+strings.Repeat("l", int(min(length+1, 1))))
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", size))), length
			if got := s.send(r); accepted {
				if got.status != 201 {
					t.Errorf("%d bytes: %+v", size, got)
				}
			} else {
				s.wantProblem(got, 413, "body_too_large")
			}
		}
	}
	s.wantRuns(4)
}

func TestUnreadableRequest(t *testing.T) {
	s := newService(t, nil, created())
	r := request("POST", "/payments", "", oncehttp.Header, key)
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))), -1
	s.wantProblem(s.send(r), 400, "body_unreadable")
	s.wantRuns(0)
	if s.store.calls != 0 {
		t.Error("the store was asked about half a request")
	}
	// The limit of an outer handler is reported as such.
	r = request("POST", "/payments", "", oncehttp.Header, key)
	r.Body, r.ContentLength = http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("xxxxx")), 3), -1
	s.wantProblem(s.send(r), 413, "body_too_large")
}

// TestClientHangsUpWhileSending checks that the handler does not run if the body ends early.
func TestClientHangsUpWhileSending(t *testing.T) {
	s := newService(t, nil, created())
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r)
		close(done)
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "POST /payments HTTP/1.1\r\nHost: x\r\nIdempotency-Key: "+key+"\r\nContent-Length: 10\r\n\r\nhalf")
	conn.Close()
	<-done
	s.wantRuns(0)
	if e := s.last(); e.Code != "body_unreadable" {
		t.Errorf("observed %+v", e)
	}
}

// TestMultipartFilesAreRemoved checks that the files of a multipart form are deleted with the
// request.
func TestMultipartFilesAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	part, err := m.CreateFormFile("file", "a.bin")
	if err != nil {
		t.Fatal(err)
	}
	part.Write(make([]byte, 100_000))
	m.Close()
	for _, fails := range []bool{false, true} {
		s := newService(t, nil, func(_ http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(1000); err != nil {
				t.Error(err)
			}
			if files, _ := os.ReadDir(os.TempDir()); len(files) != 1 {
				t.Errorf("%d files while the handler runs: the test shows nothing", len(files))
			}
			if fails {
				panic(errWork)
			}
		})
		func() {
			defer func() { recover() }()
			s.post(key, form.String(), "Content-Type", m.FormDataContentType())
		}()
		s.wantRuns(1)
		if files, _ := os.ReadDir(os.TempDir()); len(files) != 0 {
			t.Errorf("%d files stayed behind", len(files))
		}
	}
}

var errWork = errors.New("work failed")
