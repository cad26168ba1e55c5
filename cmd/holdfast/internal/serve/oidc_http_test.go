package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/serve"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestJobLocks checks that only a job with a valid token of its CI system acquires a lock, and that
// a refused request locks nothing.
func TestJobLocks(t *testing.T) {
	i, foreign := newIssuer(t), newIssuer(t)
	path := filepath.Join(t.TempDir(), "callers.json")
	text := fmt.Sprintf(`{"callers":[],"issuers":[{"issuer":%q,"audience":"holdfast","algorithms":["RS256"],
		"rules":[{"claims":{"repository":"acme/shop","ref":"refs/heads/main"},"name":"shop","prefixes":["shop/"],"rights":["acquire"]}]}]}`, i.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	callers, err := caller.Open(path, &caller.FileOptions{Logger: quiet, Verifier: serve.NewIssuers(quiet).Verifier})
	if err != nil {
		t.Fatal(err)
	}
	engine := mem.New(nil)
	var log bytes.Buffer
	s, err := server.New(engine, &server.Options{Callers: callers, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	h := exchange.Recorded(t, s)

	main := map[string]any{"ref": "refs/heads/main", "run_id": "4711"}
	with := func(name string, v any) map[string]any { return map[string]any{"ref": "refs/heads/main", name: v} }
	good := byRSA(i.rsa)
	for n, c := range []struct {
		what, token, name string
		status            int
		code              string
	}{
		{"a job", token("RS256", i.claims(main), good), "shop/deploy", 201, ""},
		{"another prefix", token("RS256", i.claims(main), good), "bank/deploy", 403, "not-permitted"},
		{"nothing shown", "", "shop/a", 401, "not-authenticated"},
		{"expired", token("RS256", i.claims(with("exp", time.Now().Add(-time.Hour).Unix())), good), "shop/b", 401, "not-authenticated"},
		{"foreign key", token("RS256", i.claims(main), byRSA(foreign.rsa)), "shop/c", 401, "not-authenticated"},
		{"foreign issuer", token("RS256", foreign.claims(main), byRSA(foreign.rsa)), "shop/d", 401, "not-authenticated"},
		{"other audience", token("RS256", i.claims(with("aud", "bank")), good), "shop/e", 401, "not-authenticated"},
		{"unsigned", token("none", i.claims(main), byNobody), "shop/f", 401, "not-authenticated"},
		{"HS256 by the public key", token("HS256", i.claims(main), bySecret(&i.rsa.PublicKey, "pem")), "shop/g", 401, "not-authenticated"},
		{"an algorithm that is not listed", token("ES256", i.claims(main), byEC(i.ec)), "shop/h", 401, "not-authenticated"},
		{"other claims", token("RS256", i.claims(with("repository", "acme/shop-fork")), good), "shop/i", 401, "not-authenticated"},
		{"another branch", token("RS256", i.claims(with("ref", "refs/heads/main2")), good), "shop/j", 401, "not-authenticated"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/leases", strings.NewReader(fmt.Sprintf(`{"name":%q,"ttl_ms":60000}`, c.name)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", fmt.Sprintf("job-%016d", n))
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var p struct{ Code string }
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != c.status || p.Code != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.what, w.Code, w.Body, c.status, c.code)
		}
		lock, err := engine.Inspect(context.Background(), c.name)
		if held := err == nil && len(lock.Holders) > 0; held != (c.status == 201) {
			t.Errorf("%s: %+v, %v", c.what, lock, err)
		}
	}
	for _, want := range []string{"what=refused caller=shop", "repository=acme/shop", "run_id=4711"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, log.String())
		}
	}
}
