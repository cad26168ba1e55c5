package server_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/onetime"
)

// TestIDRedeemsNothing checks that the ID of a one-time token, which logs, events and errors
// contain, yields no payload in any field of a request.
func TestIDRedeemsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		client, err := holdfast.New(engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		tokens, err := onetime.New(client, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := server.New(engine, &server.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_, _, _ = s.Close(context.Background()), tokens.Close(context.Background()), client.Close()
		}()
		secret, err := tokens.Issue(t.Context(), []byte("user 42"), hour)
		if err != nil {
			t.Fatal(err)
		}
		id, err := tokens.ID(secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{
			`{"digest":"` + id + `","by":` + other + `}`, `{"digest":"` + id + `"}`,
			`{"proof":"` + id + `","by":` + other + `}`, `{"proof":"` + id + `"}`,
		} {
			for _, path := range []string{"/v1/driver/peek", "/v1/driver/redeem"} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+path, strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				if answer := w.Body.String(); strings.Contains(answer, "payload") || w.Code == http.StatusOK && !strings.Contains(answer, `"state":"unknown"`) {
					t.Errorf("%s of %s: %d %s", path, body, w.Code, answer)
				}
			}
		}
		if payload, err := tokens.Redeem(t.Context(), secret); err != nil || string(payload) != "user 42" {
			t.Errorf("the secret redeems %q, %v", payload, err)
		}
	})
}
