package strict

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

type small struct {
	Name  string `json:"name"`
	TTL   int64  `json:"ttl"`
	Short uint8  `json:"short"`
	Queue bool   `json:"queue"`
	At    struct {
		Host string `json:"host"`
		PID  int    `json:"pid"`
	} `json:"at"`
	Text   int               `json:"text,string"`
	Maybe  *int              `json:"maybe"`
	Labels map[string]string `json:"labels"`
	Raw    json.RawMessage   `json:"raw"`
	List   []string          `json:"list"`
	inside
}

type inside struct {
	Deep string `json:"deep"`
}

// seeds are texts that a quick reads (the first ones), and such as it must leave alone.
var seeds = []string{
	`{}`, `{"name":"a b/c é 😀","ttl":30000,"short":255,"queue":true,"at":{"host":"h","pid":7}}`,
	`{"at":{},"queue":false,"ttl":0,"name":""}`,

	`{"name":"a","name":"b"}`, `{"Name":"a"}`, `{"nam":"a"}`, `{"at":{"host":"a","host":"b"}}`, `{"at":{"hosts":1}}`,
	`{"ttl":-1}`, `{"ttl":01}`, `{"ttl":1.0}`, `{"ttl":1e3}`, `{"ttl":9223372036854775807}`, `{"ttl":99999999999999999999}`, `{"short":256}`,
	`{"ttl":"1"}`, `{"ttl":}`, `{"name":1}`, `{"name":null}`, `{"queue":1}`, `{"queue":tru}`, `{"queue":"true"}`, `{"text":"1"}`, `{"text":1}`,
	`{"maybe":1}`, `{"labels":{"a":"b"}}`, `{"raw":{"a":1}}`, `{"list":["a"]}`, `{"deep":"a"}`, `{"inside":{"deep":"a"}}`,
	`{"name":"\u0061"}`, `{"name":"\ud800"}`, "{\"name\":\"a\nb\"}", "{\"name\":\"\xff\"}", "{\"na\x00me\":\"a\"}", `{"name":"a`, `{"name":"a"`, `{"name":"a",}`,
	`{"name":"a"}x`, `{"name":"a"} `, ` {"name":"a"}`, `{"name" :"a"}`, `{,"name":"a"}`, `{"name":"a""ttl":1}`, ``, `{`, `[]`, `null`, `"a"`, `1`,
}

// TestQuick: what programs write is read quickly.
func TestQuick(t *testing.T) {
	for i, text := range seeds[:4] {
		if quick := quicklyIs(t, []byte(text)); quick != (i < 3) {
			t.Errorf("%s: is read quickly: %t", text, quick)
		}
	}
}

// FuzzQuick: what is read quickly, package strict would read all the same, and as that.
func FuzzQuick(f *testing.F) {
	for _, text := range seeds {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) { quicklyIs(t, data) })
}

// quicklyIs reports whether data is read quickly, and fails if otherwise it were not, or
// not so.
func quicklyIs(t *testing.T, data []byte) bool {
	var s Shapes
	var got, want small
	of := s.shapeOf(reflect.TypeFor[small]())
	text := []byte(strings.ToValidUTF8(string(data), "?")) // which is looked at before
	if !of.quickly(text, reflect.ValueOf(&got).Elem()) {
		return false
	}
	if err := s.slowly(text, &want, of); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v (%v)", text, got, want, err)
	}
	return true
}
