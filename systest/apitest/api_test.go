package apitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/holdfast-locks/holdfast/internal/exchange"
)

// An api is the server's description in OpenAPI, with the responses of it that were seen.
type api struct {
	doc  *openapi3.T
	mux  *http.ServeMux  // of its operations; each handler stores its route in found
	seen map[string]bool // by method, path and status
}

// found is the operation of a request, as a handler of the mux stores it. foundKey is its key in
// the request's context.
type found struct {
	route  routers.Route
	values map[string]string
}

type foundKey struct{}

// load reads a description and validates it, including its examples.
func load(text []byte) (*api, error) {
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	a := &api{doc: doc, mux: http.NewServeMux(), seen: map[string]bool{}}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			arrays(operation)
			route := routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: operation}
			a.mux.HandleFunc(method+" "+path, func(_ http.ResponseWriter, r *http.Request) {
				f := r.Context().Value(foundKey{}).(*found)
				f.route, f.values = route, map[string]string{}
				for _, p := range slices.Concat(item.Parameters, operation.Parameters) {
					if p.Value.In == openapi3.ParameterInPath {
						f.values[p.Value.Name] = r.PathValue(p.Value.Name)
					}
				}
			})
		}
	}
	return a, nil
}

// find returns the operation of a request. If the description has none, route.Operation is nil.
func (a *api) find(r *http.Request) found {
	var f found
	a.mux.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), foundKey{}, &f)))
	return f
}

// check compares an exchange with the description: the response, and also the request if the server
// accepted it.
func (a *api) check(e exchange.Exchange) error {
	r, err := http.NewRequest(e.Method, e.URL, bytes.NewReader(e.Request.Body))
	if err != nil {
		return err
	}
	if e.Status == 0 || strings.HasPrefix(r.URL.Path, "/v1/driver/") {
		return nil // the caller left before the response, or the request is an engine's
	}
	r.Header = e.Request.Header.Clone()
	f := a.find(r)
	if f.route.Operation == nil {
		if e.Status < http.StatusBadRequest {
			return errors.New("the description has no such operation")
		}
		f.route = a.elsewhere(e.Status)
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: f.values, Route: &f.route, Options: options}
	if e.Status < http.StatusBadRequest {
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
			return fmt.Errorf("a request was accepted that is not as described: %w", err)
		}
	}
	if err := answered(in, e); err != nil {
		return err
	}
	a.seen[fmt.Sprintf("%s %s %d", f.route.Method, f.route.Path, e.Status)] = true
	return nil
}

var options = &openapi3filter.Options{
	IncludeResponseStatus: true, RejectWhenRequestBodyNotSpecified: true,
	AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, // the server has checked it
}

// elsewhere returns the operation for requests that are not in the description. They are all
// refused.
func (a *api) elsewhere(status int) routers.Route {
	return routers.Route{Spec: a.doc, PathItem: &openapi3.PathItem{}, Operation: &openapi3.Operation{
		Security:  openapi3.NewSecurityRequirements(),
		Responses: openapi3.NewResponses(openapi3.WithStatus(status, a.doc.Components.Responses["Elsewhere"])),
	}}
}

// answered compares a response with the description.
func answered(in *openapi3filter.RequestValidationInput, e exchange.Exchange) error {
	body := e.Response.Body
	if response := in.Route.Operation.Responses.Status(e.Status); response != nil && len(response.Value.Content) == 0 && len(body) > 0 {
		return fmt.Errorf("%d has a body: %s", e.Status, body)
	}
	if streams(e.Response.Header.Get("Content-Type")) {
		body = values(e)
	}
	err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Options: options,
		Status: e.Status, Header: e.Response.Header, Body: io.NopCloser(bytes.NewReader(body)),
	})
	if err != nil {
		return fmt.Errorf("%w\nin %.2000s", err, body)
	}
	return nil
}

// The media types of streams. Each line of an ndjson stream, and the data of each event of an sse
// stream, is one value of the described schema. All values are checked at once, as an array.
const (
	ndjson = "application/x-ndjson"
	sse    = "text/event-stream"
)

func init() {
	openapi3filter.RegisterBodyDecoder(ndjson, openapi3filter.JSONBodyDecoder)
	openapi3filter.RegisterBodyDecoder(sse, openapi3filter.JSONBodyDecoder)
}

func streams(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return kind == ndjson || kind == sse
}

// arrays turns the schemas of an operation's streams into arrays.
func arrays(operation *openapi3.Operation) {
	for _, response := range operation.Responses.Map() {
		for kind, media := range response.Value.Content {
			if streams(kind) {
				media.Schema = openapi3.NewSchemaRef("", &openapi3.Schema{Type: &openapi3.Types{openapi3.TypeArray}, Items: media.Schema})
			}
		}
	}
}

// values returns the values of a stream as an array. A stream that was cut may end within a value.
func values(e exchange.Exchange) []byte {
	var all [][]byte
	for line := range bytes.Lines(e.Response.Body) {
		value, whole := bytes.CutSuffix(line, []byte("\n"))
		if strings.HasPrefix(e.Response.Header.Get("Content-Type"), sse) {
			var data bool
			if value, data = bytes.CutPrefix(value, []byte("data: ")); !data {
				continue
			}
		}
		if whole && len(value) > 0 {
			all = append(all, value)
		}
	}
	return slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]"))
}

// answers returns the method, path and status of each described response.
func (a *api) answers() (all []string) {
	for path, item := range a.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status := range operation.Responses.Map() {
				all = append(all, method+" "+path+" "+status)
			}
		}
	}
	slices.Sort(all)
	return all
}
