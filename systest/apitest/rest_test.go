package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// rest is a server for requests that need earlier requests, which sweep does not make.
type rest struct {
	*testing.T
	handler http.Handler
}

// rest makes the requests whose responses neither the tests of the endpoints nor sweep produce.
func (a *api) rest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := false
		engine := &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, req hook.Request, send func() error) error {
			if deaf && (req.Method == "Complete" || req.Method == "Redeem" || req.Method == "Downgrade") {
				return errors.New("reset")
			}
			return send()
		}}
		s, err := server.New(engine, &server.Options{Secret: bytes.Repeat([]byte("s"), 32)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.Background())
		r := rest{t, exchange.Recorded(t, s)}

		r.send(200, "GET", "/openapi.json", "", "")
		run := r.send(201, "POST", "/v1/once/work", "the-first-of-them", `{}`)
		r.send(202, "POST", "/v1/once/work", "the-second-of-them", `{"wait_ms":1000}`)
		token := r.send(201, "POST", "/v1/onetime", "", `{"payload":"x","ttl_ms":60000}`)
		lease := r.send(201, "POST", "/v1/leases", "", `{"name":"n"}`)
		deaf = true
		r.send(504, "POST", "/v1/leases/downgrade", "", `{"name":"n","lease_id":"`+lease["lease_id"].(string)+`"}`)
		r.send(504, "PUT", "/v1/once/work/result", "", `{"lease_id":"`+run["lease_id"].(string)+`"}`)
		r.send(504, "POST", "/v1/onetime/redeem", "", `{"token":"`+token["token"].(string)+`"}`)
	})
}

// send sends a request and returns the response, which must have the status.
func (r rest) send(status int, method, path, key, body string) (answer map[string]any) {
	r.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Host = "127.0.0.1:7420"
	if body == "" {
		req.Body = http.NoBody
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
		req.Header.Set("Prefer", "respond-async")
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); w.Code != status || err != nil && w.Body.Len() > 0 {
		r.Errorf("%s %s: %d %.300s, want %d", method, path, w.Code, w.Body, status)
	}
	return answer
}
