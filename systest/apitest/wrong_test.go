package apitest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/exchange"
)

// small is a small description for TestWrongAnswersFail.
const small = `{
  "openapi": "3.1.0", "info": {"title": "t", "version": "1"},
  "paths": {"/v1/locks/{name}": {"post": {
    "parameters": [{"name": "name", "in": "path", "required": true, "schema": {"type": "string"}}],
    "requestBody": {"required": true, "content": {"application/json": {"schema": {
      "type": "object", "additionalProperties": false, "properties": {"reason": {"type": "string"}}}}}},
    "responses": {
      "200": {"description": "d",
        "headers": {"Fencing-Token": {"required": true, "schema": {"type": "integer"}}},
        "content": {"application/json": {"schema": {
          "type": "object", "additionalProperties": false, "required": ["name", "token", "left", "kind"],
          "properties": {
            "name": {"type": "string"},
            "token": {"type": "integer", "exclusiveMinimum": 0},
            "left": {"type": ["integer", "null"]},
            "kind": {"const": "lease"}}}}}},
      "204": {"description": "d"},
      "206": {"description": "d", "content": {"application/x-ndjson": {"schema": {
        "type": "object", "additionalProperties": false, "required": ["event"], "properties": {"event": {"enum": ["ping", "lost"]}}}}}},
      "207": {"description": "d", "content": {"text/event-stream": {"schema": {
        "type": "object", "additionalProperties": false, "required": ["event"], "properties": {"event": {"enum": ["ping", "lost"]}}}}}},
      "409": {"description": "d", "content": {"application/problem+json": {"schema": {
        "$ref": "#/components/schemas/Problem", "required": ["code"], "properties": {"code": {"enum": ["lock-held"]}}}}}}
    }}}},
  "components": {
    "schemas": {"Problem": {"type": "object", "additionalProperties": false, "properties": {"code": {"type": "string"}, "status": {"type": "integer"}}}},
    "responses": {"Elsewhere": {"description": "d", "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}}
  }}`

// TestWrongAnswersFail checks that check reports whatever does not match the description, including
// keywords that are new in OpenAPI 3.1.
func TestWrongAnswersFail(t *testing.T) {
	a, err := load([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	right := func() exchange.Exchange {
		return exchange.Exchange{
			Method: "POST", URL: "/v1/locks/a%2Fb", Status: 200,
			Request: exchange.Message{Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"reason":"r"}`)},
			Response: exchange.Message{
				Header: http.Header{"Content-Type": {"application/json"}, "Fencing-Token": {"7"}},
				Body:   []byte(`{"name":"n","token":7,"left":null,"kind":"lease"}`),
			},
		}
	}
	body := func(text string) func(e *exchange.Exchange) {
		return func(e *exchange.Exchange) { e.Response.Body = []byte(text) }
	}
	as := func(status int, kind, text string) func(e *exchange.Exchange) {
		return func(e *exchange.Exchange) {
			e.Status, e.Response = status, exchange.Message{Header: http.Header{"Content-Type": {kind}}, Body: []byte(text)}
		}
	}
	for _, c := range []struct {
		name string
		make func(e *exchange.Exchange)
		want string // in the error; empty: none
	}{
		{"right", func(*exchange.Exchange) {}, ""},
		{"a number for null", body(`{"name":"n","token":7,"left":5,"kind":"lease"}`), ""},
		{"an extra field", body(`{"name":"n","token":7,"left":null,"kind":"lease","more":1}`), "more"},
		{"a wrong type", body(`{"name":7,"token":7,"left":null,"kind":"lease"}`), "want string"},
		{"a missing field", body(`{"name":"n","left":null,"kind":"lease"}`), "token"},
		{"const", body(`{"name":"n","token":7,"left":null,"kind":"place"}`), "must be 'lease'"},
		{"an array of types", body(`{"name":"n","token":7,"left":"5","kind":"lease"}`), "want null or integer"},
		{"exclusiveMinimum", body(`{"name":"n","token":0,"left":null,"kind":"lease"}`), "exclusiveMinimum"},
		{"no JSON", body(`{"name":`), "decode"},
		{"an undocumented status", func(e *exchange.Exchange) { e.Status = 202 }, "status is not supported"},
		{"another content type", func(e *exchange.Exchange) { e.Response.Header.Set("Content-Type", "text/html") }, "text/html"},
		{"no content type", func(e *exchange.Exchange) { e.Response.Header.Del("Content-Type") }, "Content-Type"},
		{"a missing header", func(e *exchange.Exchange) { e.Response.Header.Del("Fencing-Token") }, "Fencing-Token"},
		{"a header of a wrong type", func(e *exchange.Exchange) { e.Response.Header.Set("Fencing-Token", "x") }, "Fencing-Token"},
		{"nothing", as(204, "", ""), ""},
		{"something for nothing", as(204, "application/json", "{}"), "has a body"},
		{"a problem", as(409, "application/problem+json", `{"code":"lock-held"}`), ""},
		{"another code", as(409, "application/problem+json", `{"code":"lost"}`), "must be"},
		{"a problem with more", as(409, "application/problem+json", `{"code":"lock-held","more":1}`), "more"},
		{"lines", as(206, ndjson, "{\"event\":\"ping\"}\n{\"event\":\"lost\"}\n"), ""},
		{"a line that was cut", as(206, ndjson, "{\"event\":\"ping\"}\n{\"eve"), ""},
		{"a wrong line", as(206, ndjson, "{\"event\":\"ping\"}\n{\"event\":\"pong\"}\n"), "pong"},
		{"events", as(207, sse, ": hello\n\nid: 1\ndata: {\"event\":\"ping\"}\n\n"), ""},
		{"a wrong event", as(207, sse, "data: {\"event\":\"ping\"}\n\ndata: {\"event\":\"pong\"}\n\n"), "pong"},
		{"an accepted request with more", func(e *exchange.Exchange) { e.Request.Body = []byte(`{"more":1}`) }, "accepted"},
		{"a refused request with more", func(e *exchange.Exchange) {
			as(409, "application/problem+json", `{"code":"lock-held"}`)(e)
			e.Request.Body = []byte(`{"more":1}`)
		}, ""},
		{"an unknown path", func(e *exchange.Exchange) { e.URL = "/v1/else" }, "no such operation"},
		{"an unknown method", func(e *exchange.Exchange) { e.Method = "PUT" }, "no such operation"},
		{"an unknown path, refused", func(e *exchange.Exchange) {
			as(404, "application/problem+json", `{"code":"not-found"}`)(e)
			e.URL = "/v1/else"
		}, ""},
		{"an unknown path, refused in text", func(e *exchange.Exchange) {
			as(404, "text/plain", `not found`)(e)
			e.URL = "/v1/else"
		}, "text/plain"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := right()
			c.make(&e)
			err := a.check(e)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("a right answer fails: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
