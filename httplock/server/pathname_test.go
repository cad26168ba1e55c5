package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server"
)

// TestNameInQuery checks that a name can be sent in the query, for proxies that decode paths.
func TestNameInQuery(t *testing.T) {
	s, _ := open(t, server.Options{})
	ask := func(method, target, body string) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequest(method, "http://127.0.0.1"+target, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "0123456789abcdef"+fmt.Sprintf("%x", body))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	for _, name := range []string{"orders/42", "..", "a//b/", "~", "a?b=c;d#e%2F", "é 😀"} {
		if w := ask(http.MethodPost, "/v1/leases", fmt.Sprintf(`{"name":%q}`, name)); w.Code != http.StatusCreated {
			t.Fatalf("%q: %d %s", name, w.Code, w.Body)
		}
		w := ask(http.MethodGet, "/v1/locks/~?name="+url.QueryEscape(name), "")
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), fmt.Sprintf(`"name":%q,"held":true`, name)) {
			t.Errorf("%q: %d %s", name, w.Code, w.Body)
		}
	}
	if w := ask(http.MethodGet, "/v1/locks/~", ""); !strings.Contains(w.Body.String(), `"name":"~","held":true`) {
		t.Errorf("without a query: %d %s, want the lock of that name", w.Code, w.Body)
	}
	if w := ask(http.MethodGet, "/v1/locks/a?name=orders%2F42", ""); !strings.Contains(w.Body.String(), `"name":"a","held":false`) {
		t.Errorf("a name in the path: %d %s, want no look into the query", w.Code, w.Body)
	}
	for _, path := range []string{"/v1/locks/%2F", "/v1/locks/.", "/v1/locks/..", "/v1/locks/reports/nightly", "/v1/once/%2F"} {
		w := ask(http.MethodGet, path, "")
		wantProblem(t, w, http.StatusNotFound, "not-found")
		if !strings.Contains(w.Body.String(), "~?name=") {
			t.Errorf("%s: %s, want to be told how to ask", path, w.Body)
		}
	}
	for _, query := range []string{"name=a&name=b", "name=", "name=%zz", "name=a;b"} {
		wantProblem(t, ask(http.MethodGet, "/v1/locks/~?"+query, ""), http.StatusBadRequest, "invalid")
	}
}
