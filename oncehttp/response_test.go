package oncehttp_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/oncehttp"
)

func TestWhichStatusIsKept(t *testing.T) {
	for status, kept := range map[int]bool{
		200: true, 201: true, 202: true, 204: true, 299: true, 301: true, 303: true, 304: true,
		400: true, 401: true, 403: true, 404: true, 409: true, 412: true, 422: true, 498: true,
		408: false, 425: false, 429: false, 499: false, 500: false, 502: false, 503: false, 599: false, 600: false, 999: false, 101: false,
	} {
		s := newService(t, nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		for run := range 2 {
			if r := s.post(key, "x"); r.status != status || r.replayed() != (kept && run == 1) {
				t.Errorf("%d: %+v", status, r)
			}
		}
		want := holdfast.OnceAbsent
		if kept {
			want = holdfast.OnceDone
		}
		if e := s.last(); s.state() != want || !kept && (e.Kind != observe.RequestRan || e.Kept || e.Err != nil || e.Status != status) {
			t.Errorf("%d: %s in the store, observed %+v", status, s.state(), e)
		}
	}
}

func TestKeepIsConfigurable(t *testing.T) {
	s := newService(t, &oncehttp.Options{Keep: func(status int) bool { return status == 503 }}, func(w http.ResponseWriter, r *http.Request) {
		status := 0
		fmt.Sscan(r.URL.RawQuery, &status)
		w.WriteHeader(status)
	})
	for range 2 {
		s.send(request("POST", "/payments?503", "x", oncehttp.Header, "a"))
		s.send(request("POST", "/payments?200", "x", oncehttp.Header, "b"))
	}
	s.wantRuns(3)
}

// TestResponsesComeBackAsTheyAre checks that a response and its replay are what the handler sends
// without the middleware.
func TestResponsesComeBackAsTheyAre(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, handler := range map[string]http.HandlerFunc{
		"nothing":     func(http.ResponseWriter, *http.Request) {},
		"status only": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"empty write": func(w http.ResponseWriter, _ *http.Request) { w.Write(nil) },
		"all bytes":   func(w http.ResponseWriter, _ *http.Request) { w.Write(every) },
		"a newline":   func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "\n") },
		"in parts": func(w http.ResponseWriter, _ *http.Request) {
			for i := range every {
				w.Write(every[i : i+1])
			}
		},
		"sniffed as HTML": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
		"not sniffed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "<html>")
		},
		"many values": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Link", "</a>; rel=a")
			w.Header().Add("Link", "</b>; rel=b")
			w.Header().Add("Link", "</a>; rel=a")
			w.Header().Set("Vary", "Accept")
			w.Header()["x-lower"] = []string{"kept as written"}
			w.WriteHeader(http.StatusCreated)
		},
		"no UTF-8 in a value": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Name", "Zo\xeb <&>\u2028") },
		"length given": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			io.WriteString(w, "abc")
		},
		"header after status": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.Header().Set("Too-Late", "1")
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, "x")
			w.Header().Set("Later", "1")
		},
		"early hints": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusContinue)
			w.WriteHeader(http.StatusAccepted)
		},
		"no body allowed": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			if n, err := w.Write([]byte("x")); n != 0 || err != http.ErrBodyNotAllowed {
				t.Errorf("Write after 204 = %d, %v", n, err)
			}
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/done", http.StatusSeeOther) },
		"error":    func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no such account", http.StatusNotFound) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, nil, handler)
			server := httptest.NewServer(s)
			defer server.Close()
			bare := httptest.NewUnstartedServer(handler)
			bare.Config.ErrorLog = log.New(io.Discard, "", 0) // one handler sets two statuses
			bare.Start()
			defer bare.Close()
			plain, first, again := ask(t, "POST", bare.URL), ask(t, "POST", server.URL), ask(t, "POST", server.URL)
			if name == "early hints" || name == "in parts" {
				plain.header.Del("Content-Type") // sniffed from the first byte
				first.header.Del("Content-Type")
				again.header.Del("Content-Type")
			}
			if !reflect.DeepEqual(first, plain) {
				t.Errorf("first:  %+v\nwithout the middleware: %+v", first, plain)
			}
			if !again.replayed() {
				t.Errorf("not replayed: %+v", again)
			}
			again.header.Del(oncehttp.ReplayedHeader)
			if !reflect.DeepEqual(again, first) {
				t.Errorf("replay: %+v\nfirst:  %+v", again, first)
			}
			s.wantRuns(1)
		})
	}
}

// ask sends a request without following redirects, and removes the Date from the reply.
func ask(t testing.TB, method, url string) reply {
	t.Helper()
	r, err := http.DefaultTransport.RoundTrip(outgoing(t, method, url+"/payments", ""))
	if err != nil {
		t.Fatal(err)
	}
	got := received(t, r)
	if got.header.Get("Date") == "" {
		t.Error("there is no Date")
	}
	got.header.Del("Date")
	return got
}

func TestHEAD(t *testing.T) {
	s := newService(t, &oncehttp.Options{Methods: []string{"HEAD"}}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "12345")
		w.Header().Set("Etag", `"1"`)
	})
	server := httptest.NewServer(s)
	defer server.Close()
	first, again := ask(t, "HEAD", server.URL), ask(t, "HEAD", server.URL)
	if first.replayed() || !again.replayed() {
		t.Errorf("%+v, %+v", first, again)
	}
	for _, r := range []reply{first, again} {
		if r.header.Get("Content-Length") != "12345" || r.header.Get("Etag") != `"1"` {
			t.Errorf("%+v", r)
		}
	}
	s.wantRuns(1)
}

// TestWhatIsNotReplayed checks that cookies, the date and fields of one connection are only in the
// first response.
func TestWhatIsNotReplayed(t *testing.T) {
	fields := []string{
		"Set-Cookie", "Date", "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Upgrade", "Proxy-Authenticate",
		"X-Hop", "X-Other-Hop", oncehttp.ReplayedHeader,
	}
	s := newService(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		for _, f := range fields {
			w.Header().Add(f, "of the first")
		}
		w.Header()["Connection"] = []string{"close, x-hop", "X-Other-Hop"}
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("Transfer-Encoding", "identity")
		w.Header().Set("X-Kept", "1")
		io.WriteString(w, "x")
		w.Header().Set("X-Sum", "1")
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
	})
	first, again := s.post(key, ""), s.post(key, "")
	for _, f := range fields {
		if first.header.Get(f) == "" {
			t.Errorf("%s is missing at first", f)
		}
		if v := again.header.Get(f); v != "" && f != oncehttp.ReplayedHeader || v == "of the first" {
			t.Errorf("%s: %q is replayed", f, v)
		}
	}
	if first.header.Get("Trailer") != "" || again.header.Get("Transfer-Encoding") != "" || again.header.Get("X-Kept") != "1" {
		t.Errorf("%v\n%v", first.header, again.header)
	}
}

// TestHeadersOfOuterHandlers checks that the header fields of outer handlers are set anew for each
// request.
func TestHeadersOfOuterHandlers(t *testing.T) {
	s := newService(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Add("Vary", "Accept")
		h.Del("X-Removed")
		h.Set("X-Changed", "inside")
		h.Set("X-Inside", "1")
		if h.Get("X-Request-Id") == "" {
			t.Error("the handler does not see what is set outside")
		}
	})
	inner, n := s.Handler, 0
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		w.Header().Set("X-Request-Id", fmt.Sprint(n))
		w.Header().Set("Vary", "Origin")
		w.Header().Set("X-Removed", "outside")
		w.Header().Set("X-Changed", "outside")
		inner.ServeHTTP(w, r)
	})
	for want := 1; want <= 2; want++ {
		r := s.post(key, "")
		if r.replayed() != (want == 2) || r.header.Get("X-Request-Id") != fmt.Sprint(want) || !slices.Equal(r.header["Vary"], []string{"Origin", "Accept"}) ||
			r.header["X-Removed"] != nil || r.header.Get("X-Changed") != "inside" || r.header.Get("X-Inside") != "1" {
			t.Errorf("%d: %v", want, r.header)
		}
	}
}

// TestFlushAndHijackAreRefused checks that a handler that needs the connection gets an error at
// once.
func TestFlushAndHijackAreRefused(t *testing.T) {
	s := newService(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := w.(http.Flusher); ok {
			t.Error("the writer is a Flusher, which promises what it cannot do")
		}
		if _, ok := w.(http.Hijacker); ok {
			t.Error("the writer is a Hijacker")
		}
		c := http.NewResponseController(w)
		if err := c.Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Flush = %v", err)
		}
		if _, _, err := c.Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Hijack = %v", err)
		}
	})
	server := httptest.NewServer(s)
	defer server.Close()
	if r := ask(t, "POST", server.URL); r.status != 200 {
		t.Errorf("%+v", r)
	}
	s.wantRuns(1)
}

func TestInvalidStatusPanics(t *testing.T) {
	for _, status := range []int{0, -1, 99, 1000} {
		s := newService(t, &oncehttp.Options{Keep: func(int) bool { return true }}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d: no panic", status)
				}
			}()
			s.post(key, "")
		}()
		if s.state() != holdfast.OnceAbsent {
			t.Errorf("%d: %s", status, s.state())
		}
	}
}

// TestForeignResult checks that a result of another program under the name is not sent.
func TestForeignResult(t *testing.T) {
	for _, result := range []string{"", "x", "{}\n", `{"v":2,"status":200}` + "\nx", `{"v":1,"status":200}`, `{"v":1}` + "\n", `{"v":1,"status":1000}` + "\n"} {
		s := newService(t, nil, created())
		name := s.once.Name("account ", "POST /payments", key)
		if _, err := s.client.Once(t.Context(), name, nil, onceValue(result)); err != nil {
			t.Fatal(err)
		}
		s.wantProblem(s.post(key, ""), 500, "misconfigured")
		s.wantRuns(0)
	}
}
