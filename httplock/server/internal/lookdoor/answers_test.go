package lookdoor_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestNoChanges checks that requests without revisions get whole lists, or are refused if wrong.
func TestNoChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.take("app/a", time.Hour)
		whole := func(query string) {
			t.Helper()
			w := s.ask(query)
			if w.Code != http.StatusOK || w.Header().Get("Holdfast-Revision") != "" || w.Header().Get("Holdfast-Since") != "" {
				t.Errorf("%s: %d %s", query, w.Code, w.Header())
			}
		}
		whole("")
		whole("since=&prefix=app/")
		s.who.Prefixes = []string{"app/"}
		whole("since=&prefix=app/")
		if w := s.ask("since="); w.Code != http.StatusForbidden {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		s.who.Prefixes = nil
		w := httptest.NewRecorder()
		exchange.Recorded(t, s.server).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/v1/locks?since=", nil))
		if w.Code != http.StatusBadRequest {
			t.Errorf("a page of JSON: %d %s", w.Code, w.Body)
		}
		s.engine.fails = driver.ErrUnavailable
		if w := s.ask("since="); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		s.engine.fails = nil
		s.want(true, "app/a")
		s.engine.most.Store(125_001)
		s.engine.lists.Store(0)
		whole("since=" + s.revision)
		whole("since=" + s.revision)
		if n := s.engine.lists.Load(); n != 3 {
			t.Errorf("%d lists for two answers, want 3: the first finds out that there are too many", n)
		}
	})
}

// TestLongAnswersAreCompressed checks that the reply to a look is compressed, unless it is short.
func TestLongAnswersAreCompressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		var names []string
		for i := range 30 {
			names = append(names, fmt.Sprint("orders/", i))
			s.take(names[i], time.Hour)
		}
		look := func(names []string, takes string) *httptest.ResponseRecorder {
			body, err := json.Marshal(wire.LookRequest{Names: names})
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/locks/look", bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept-Encoding", takes)
			w := httptest.NewRecorder()
			s.server.ServeHTTP(w, r)
			if w.Code != http.StatusOK || w.Header().Get("Vary") != "Accept-Encoding" {
				t.Errorf("%d %s", w.Code, w.Header())
			}
			return w
		}
		plain, zipped := look(names, ""), look(names, "gzip")
		if zipped.Header().Get("Content-Encoding") != "gzip" || plain.Header().Get("Content-Encoding") != "" || zipped.Body.Len() > plain.Body.Len()/5 {
			t.Errorf("%d bytes, %d compressed", plain.Body.Len(), zipped.Body.Len())
		}
		t.Logf("30 locks: %d bytes, %d compressed", plain.Body.Len(), zipped.Body.Len())
		unzipped, err := gzip.NewReader(zipped.Body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(unzipped)
		if err != nil || !bytes.Equal(text, plain.Body.Bytes()) {
			t.Errorf("%v: %s", err, text)
		}
		if short := look(names[:1], "gzip"); short.Header().Get("Content-Encoding") != "" {
			t.Error("what is short is compressed")
		}
	})
}
