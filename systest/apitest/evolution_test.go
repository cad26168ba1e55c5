package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// What may change within /v1: responses may get more fields, but the server refuses requests with
// unknown fields. So the description leaves the objects of responses open. To find fields that the
// description lacks, TestExchanges compares with a description whose objects are closed.

// asItIs returns a description unchanged.
func asItIs(text []byte) []byte { return text }

// closed returns a description whose objects may only have the fields that it lists.
func closed(text []byte) []byte {
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		panic(err) // the file is ours
	}
	walk(doc["components"].(map[string]any)["schemas"], func(m map[string]any) {
		if _, open := m["additionalProperties"]; m["type"] == "object" && m["properties"] != nil && !open {
			m["additionalProperties"] = false
		}
	})
	return encoded(doc)
}

// widened returns the JSON body of a response with one more field in each object.
func widened(e exchange.Exchange) []byte {
	kind := e.Response.Header.Get("Content-Type")
	if !strings.HasPrefix(kind, "application/json") && !strings.HasPrefix(kind, "application/problem+json") || strings.HasSuffix(e.URL, "/openapi.json") {
		return e.Response.Body
	}
	var v any
	if json.Unmarshal(e.Response.Body, &v) != nil {
		return e.Response.Body
	}
	walk(v, func(m map[string]any) {
		m["new_field"] = "new"
		for _, numbers := range []string{"measures", "counts"} { // a Finding has maps with free keys
			if m, ok := m[numbers].(map[string]any); ok {
				delete(m, "new_field")
			}
		}
	})
	return encoded(v)
}

// walk calls f for each object in v.
func walk(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walk(v[name], f)
		}
		f(v)
	case []any:
		for _, one := range v {
			walk(one, f)
		}
	}
}

// TestUnknownFieldInRequest checks that both the server and the description refuse a field that
// does not exist, and that the server does nothing.
func TestUnknownFieldInRequest(t *testing.T) {
	a := read(t, asItIs)
	engine := mem.New(nil)
	s, err := server.New(engine, &server.Options{Secret: bytes.Repeat([]byte("s"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	count := 0
	for _, example := range a.examples() {
		if example.operation.RequestBody == nil {
			continue
		}
		count++
		body := example.operation.RequestBody.Value.Content.Get("application/json").Example.(map[string]any)
		for _, more := range []bool{false, true} {
			if body = maps.Clone(body); more {
				body["new_field"] = "new"
			}
			r := example.request("1")
			text := encoded(body)
			with(r, bytes.NewReader(text), len(text))
			f := a.find(r)
			in := &openapi3filter.RequestValidationInput{Request: r, PathParams: f.values, Route: &f.route, Options: options}
			if err := openapi3filter.ValidateRequest(context.Background(), in); (err != nil) != more {
				t.Errorf("%s %s: the description says %v of %s", example.method, example.path, err, text)
			}
			if !more {
				continue
			}
			with(r, bytes.NewReader(text), len(text))
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "new_field") {
				t.Errorf("%s %s: %d %s, want 400 and the name of the field", example.method, example.path, w.Code, w.Body)
			}
		}
	}
	if count < 15 {
		t.Errorf("%d operations have a body: are they found?", count)
	}
	for lock, err := range engine.List(context.Background(), "") {
		t.Errorf("%+v, %v: something was done", lock, err)
	}
}
