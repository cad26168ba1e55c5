package strict_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/strict"
)

type inner struct {
	Host  string `json:"host"`
	Ports []uint16
}

// self decodes itself: a JSON string becomes its host.
type self inner

func (s *self) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, &s.Host)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode((*inner)(s))
}

type common struct {
	Name  string `json:"name"`
	Token uint64 `json:"token"`
}

type body struct {
	common
	TTL     int64             `json:"ttl_ms,omitempty"`
	Queue   bool              `json:"queue"`
	Holder  *inner            `json:"holder"`
	Self    self              `json:"self"`
	Leases  []inner           `json:"leases"`
	Labels  map[string]string `json:"labels"`
	Payload json.RawMessage   `json:"payload"`
	Binary  []byte            `json:"binary"`
	Secret  string            `json:"-"`
}

func TestAccepted(t *testing.T) {
	for _, text := range []string{
		`{}`,
		` { "name" : "a" , "ttl_ms" : -12 , "holder" : { "host" : "h" , "Ports" : [ 1 , 2 ] } } `,
		`{"name":"\u006e \" \\ \ud83d\ude00","leases":[{"host":"]}"},{}],"labels":{"Name":"x","name":"y"}}`,
		`{"na\u006de":"a"}`,
		`{"self":"web","leases":[],"queue":true}`,
		`{"self":{"host":"web"}}`,
		`{"holder":null,"ttl_ms":null,"labels":{}, "leases":[]}`,
		`{"payload":{"a":1,"a":[null,{"A":1e5}],"s":"\ud800"}}`,
		`{"payload":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`,
	} {
		var got, want body
		if err := strict.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v (%v)", text, got, want, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for text, why := range map[string]string{
		``:                                    "unexpected end",
		`null`:                                "want an object, got null",
		`[]`:                                  "the value: want an object, got array",
		`{} {}`:                               "invalid character '{' after",
		`{"name":"a"}x`:                       "invalid character 'x' after",
		`{"nam":"a"}`:                         `field "nam" is not known`,
		`{"Name":"a"}`:                        `field "Name" is not known: it is "name"`,
		`{"name":"a","name":"a"}`:             `field "name" is given twice`,
		`{"name":"a","\u006eame":"b"}`:        `field "name" is given twice`,
		`{"labels":{"a":"1","a":"2"}}`:        `field "labels.a" is given twice`,
		`{"holder":{"host":"a","user":1}}`:    `field "holder.user" is not known`,
		`{"leases":[{},{"hosts":1}]}`:         `field "leases[1].hosts" is not known`,
		`{"leases":[null]}`:                   `field "leases[0]": want an object, got null`,
		`{"holder":{"Ports":[1, null ]}}`:     `field "holder.Ports[1]": want a whole number, 0 or more, of at most 16 bits, got null`,
		`{"holder":{"Ports":[70000]}}`:        `field "holder.Ports[0]": want a whole number, 0 or more, of at most 16 bits, got number 70000`,
		`{"labels":{"a":null}}`:               `field "labels.a": want text, got null`,
		`{"self":{"Host":"web"}}`:             `field "self.Host" is not known: it is "host"`,
		`{"self":"\ud800"}`:                   "half a pair",
		`{"token":"1"}`:                       `field "token": want a whole number, 0 or more, of at most 64 bits, got string`,
		`{"self":{"user":1}}`:                 `field "self.user" is not known`,
		`{"self":{"host":7}}`:                 `field "self.host": want text, got number`,
		`{"binary":"!"}`:                      `field "binary": illegal base64`,
		`{"queue":1}`:                         `field "queue": want true or false, got number`,
		`{"ttl_ms":1.5}`:                      `field "ttl_ms": want a whole number of at most 64 bits, got number 1.5`,
		`{"ttl_ms":1e3}`:                      `field "ttl_ms": want a whole number`,
		`{"ttl_ms":"1000"}`:                   `field "ttl_ms": want a whole number of at most 64 bits, got string`,
		`{"ttl_ms":9223372036854775808}`:      `field "ttl_ms": want a whole number`,
		`{"holder":{"host":7}}`:               `field "holder.host": want text, got number`,
		`{"Secret":"x"}`:                      `field "Secret" is not known`,
		"{\"name\":\"\xff\"}":                 "not UTF-8",
		`{"name":"\ud800"}`:                   `field "name": half a pair`,
		`{"name":"\ud800\ud800"}`:             `field "name": half a pair`,
		`{"name":"\ud800\n"}`:                 `field "name": half a pair`,
		`{"name":"\udc00x"}`:                  `field "name": half a pair`,
		`{"labels":{"\ud800":"a"}}`:           `field "labels": half a pair`,
		`{"payload":` + deep(32) + `}`:        "nested more than 32 deep",
		`{"leases":[{"host":` + deep(9) + `}`: "unexpected end",
		`{"leases":[{"host":["a"]}]}`:         `want text, got array`,
	} {
		var v body
		if err := strict.Unmarshal([]byte(text), &v); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", text, err, why)
		}
	}
}

func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// FuzzUnmarshal checks that accepted text decodes as in encoding/json, and is accepted again after
// encoding.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"name":"\u006e","leases":[{"host":"x","Ports":[1]}],"labels":{"a":"b"},"payload":[1e5,null]}`))
	f.Add([]byte(`{"name":"\ud83d\ude00","ttl_ms":1,"holder":null}`))
	for _, text := range []string{
		`{"name":"\ud83d","ttl_ms":1.0}`, `{"ttl_ms":01}`, `{"ttl_ms":+1}`, `{"ttl_ms":9223372036854775807}`, `{"ttl_ms":}`, `{"ttl_ms":tru}`,
		`{"holder":{"Ports":[1,]}}`, `{"holder":{"Ports":[1 2]}}`, `{"holder":{"Ports":[,1]}}`, `{"holder":nul}`, `{"name":"a`, `{"name":"a"`, `{"name":"a",}`,
		`{"name" "a"}`, `{,"name":"a"}`, `{"name":"a""self":"b"}`, `{"name":"a"}}`, `{"payload":,}`, `{"payload":}`, `{"payload":[}`, "{\"na\x00me\":\"a\"}", `{`, `"a"`, "\x00",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want, again body
		if strict.Unmarshal(data, &got) != nil {
			return
		}
		if err := json.Unmarshal(data, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: got %+v, want %+v (%v)", data, got, want, err)
		}
		if text, err := json.Marshal(got); err != nil || strict.Unmarshal(text, &again) != nil {
			t.Fatalf("%s is written as %s, which is refused", data, text)
		}
	})
}
