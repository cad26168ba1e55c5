package wire_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/codes"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestPage checks that docs/reference/wire.md has the fields of the types, and the codes of the
// table, in the same order.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{} // by heading
	for _, section := range regexp.MustCompile(`(?m)^##+ `).Split(string(page), -1)[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		text[heading] = body
	}
	for _, v := range []any{
		wire.Lock{}, wire.LockDetails{}, wire.Holder{}, wire.Place{}, wire.History{}, wire.HistoryEvent{}, wire.Broken{}, wire.Break{}, wire.Who{}, wire.Token{},
		wire.Wait{}, wire.Change{}, wire.Once{}, wire.Schedule{}, wire.DoneRun{}, wire.BegunRun{}, wire.MissedRuns{}, wire.Event{},
		wire.Diagnosis{}, wire.Finding{}, wire.Problem{}, wire.Failure{},
	} {
		typ := reflect.TypeOf(v)
		fields, parts := fieldsOf(typ)
		if got := firstCells(text[typ.Name()]); !slices.Equal(got, fields) {
			t.Errorf("%s: the page has %q, the type %q", typ.Name(), got, fields)
		}
		for _, part := range parts {
			if !strings.Contains(text[typ.Name()], "`"+part+"`") {
				t.Errorf("%s: the page does not say that it has the fields of %s", typ.Name(), part)
			}
		}
	}
	var names []string
	for _, c := range codes.All() {
		names = append(names, c.Name)
		if row := fmt.Sprintf("| `%s` | %d | `", c.Name, c.Status); !strings.Contains(text["Codes"], row) {
			t.Errorf("the page lacks the row %s", row)
		}
	}
	if got := firstCells(text["Codes"]); !slices.Equal(got, names) {
		t.Errorf("the page has the codes %q, want %q", got, names)
	}
}

// TestSchemas checks that openapi.json has a property for each field of requests and replies, with
// a description unless the type is sufficient.
func TestSchemas(t *testing.T) {
	text, err := os.ReadFile("../httplock/server/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]map[string]any
			}
		}
	}
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{
		wire.Blocker{}, wire.LeaseRequest{}, wire.Self{}, wire.Lease{}, wire.Leases{}, wire.Queued{}, wire.Renewed{}, wire.Downgraded{},
		wire.LeaseResult{}, wire.LeaseResults{}, wire.Locks{}, wire.BreakRequest{}, wire.Broke{}, wire.LookRequest{}, wire.Looked{}, wire.LookFailure{},
		wire.Stats{}, wire.Bucket{}, wire.Store{}, wire.Features{}, wire.TokenCounts{}, wire.TokenCollection{}, wire.OnceRequest{}, wire.OnceDone{},
		wire.OnceResult{}, wire.OnceFailure{}, wire.OnceState{}, wire.Onces{}, wire.Session{}, wire.SignIn{}, wire.HoldRequest{}, wire.Hold{},
		wire.HoldRelease{}, wire.TokenRequest{}, wire.IssuedToken{}, wire.TokenSecret{}, wire.Redeemed{}, wire.Revoked{},
	} {
		typ := reflect.TypeOf(v)
		properties := api.Components.Schemas[typ.Name()].Properties
		fields, _ := fieldsOf(typ)
		for _, field := range fields {
			p, ok := properties[field]
			described := p["description"] != nil || p["enum"] != nil || p["const"] != nil || p["$ref"] != nil || p["items"] != nil
			if !ok || !described {
				t.Errorf("openapi.json, %s: field %s: a property: %v, described: %v", typ.Name(), field, ok, described)
			}
		}
	}
}

// fieldsOf returns the JSON names of the fields of a type, and the types that it embeds.
func fieldsOf(typ reflect.Type) (fields, parts []string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Anonymous {
			parts = append(parts, f.Name)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	return fields, parts
}

// firstCells returns the first cell of each row whose first cell is in code style.
func firstCells(section string) (cells []string) {
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_-]+)` \\|").FindAllStringSubmatch(section, -1) {
		cells = append(cells, m[1])
	}
	return cells
}
