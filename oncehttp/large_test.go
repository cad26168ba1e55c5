package oncehttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/oncehttp"
)

// TestLargeResponses checks that a body of MaxBody bytes is kept. A longer body is sent without
// being kept, and the work does not run again.
func TestLargeResponses(t *testing.T) {
	for _, parts := range []int{1, 7} {
		for size, kept := range map[int]bool{999: true, 1000: true, 1001: false, 5000: false} {
			s := newService(t, &oncehttp.Options{MaxBody: 1000}, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/x")
				w.WriteHeader(http.StatusCreated)
				body := strings.Repeat("x", size)
				for i := range parts {
					part := body[i*size/parts : (i+1)*size/parts]
					if n, err := io.WriteString(w, part); n != len(part) || err != nil {
						t.Errorf("Write = %d, %v", n, err)
					}
				}
			})
			first := s.post(key, "")
			if first.status != 201 || len(first.body) != size || first.header.Get("Content-Type") != "text/x" || first.replayed() {
				t.Errorf("%d bytes: %d with %d", size, first.status, len(first.body))
			}
			if e := s.last(); e.Kind != observe.RequestRan || !e.Kept {
				t.Errorf("observed %+v", e)
			}
			again := s.post(key, "")
			s.wantRuns(1)
			if kept {
				if !again.replayed() || again.body != first.body {
					t.Errorf("%d bytes: %+v", size, again)
				}
				continue
			}
			s.wantProblem(again, 410, "response_not_kept")
			if !strings.Contains(again.body, `"response_status":201`) {
				t.Errorf("%s does not say what the response was", again.body)
			}
		}
	}
}

// TestLargestResponses checks that the limits of body and header keep every response below the
// limit of do-once results.
func TestLargestResponses(t *testing.T) {
	s := newService(t, &oncehttp.Options{MaxBody: oncehttp.MaxBodyLimit}, func(w http.ResponseWriter, r *http.Request) {
		header, body := 0, 0
		fmt.Sscan(r.URL.Query().Get("sizes"), &header, &body)
		w.Header().Set("X-Large", strings.Repeat("\xff", header))
		w.Write(make([]byte, body))
	})
	for _, c := range []struct {
		header, body int
		kept         bool
	}{{190_000, oncehttp.MaxBodyLimit, true}, {200_000, 1, false}} {
		for run := range 2 {
			r := s.send(request("POST", fmt.Sprintf("/payments?sizes=%d+%d", c.header, c.body), "", oncehttp.Header, fmt.Sprint(c.header)))
			switch {
			case run == 0 || c.kept:
				if len(r.body) != c.body || len(r.header.Get("X-Large")) != c.header {
					t.Errorf("%+v: %d with %d bytes, header of %d", c, r.status, len(r.body), len(r.header.Get("X-Large")))
				}
			default:
				s.wantProblem(r, 410, "response_not_kept")
			}
		}
	}
	s.wantRuns(2)
}

// TestLargeErrors checks that a large response that is not to be kept frees the key.
func TestLargeErrors(t *testing.T) {
	s := newService(t, &oncehttp.Options{MaxBody: 10}, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("x", 100), http.StatusInternalServerError)
	})
	for range 2 {
		if r := s.post(key, ""); r.status != 500 || len(r.body) != 101 {
			t.Errorf("%+v", r)
		}
	}
	s.wantRuns(2)
}

// TestLargeResponseStreams checks that a client receives a large response while the handler still
// writes.
func TestLargeResponseStreams(t *testing.T) {
	seen := make(chan struct{})
	s := newService(t, &oncehttp.Options{MaxBody: 1000}, func(w http.ResponseWriter, _ *http.Request) {
		w.Write(make([]byte, 1000))
		for range 100 {
			w.Write(make([]byte, 1000))
		}
		<-seen
		io.WriteString(w, "end")
	})
	server := httptest.NewServer(s)
	defer server.Close()
	r, err := http.DefaultClient.Do(outgoing(t, "POST", server.URL+"/payments", ""))
	if err != nil {
		t.Fatal(err)
	}
	body := bufio.NewReader(r.Body)
	if _, err := io.CopyN(io.Discard, body, 50_000); err != nil {
		t.Fatal(err)
	}
	close(seen)
	rest, err := io.ReadAll(body)
	r.Body.Close()
	if err != nil || len(rest) != 51_003 || !strings.HasSuffix(string(rest), "end") {
		t.Errorf("%d bytes more, %v", len(rest), err)
	}
	if again := ask(t, "POST", server.URL); again.status != http.StatusGone {
		t.Errorf("%+v", again)
	}
}
