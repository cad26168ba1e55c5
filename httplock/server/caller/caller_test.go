package caller_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

func TestIsDirect(t *testing.T) {
	for _, c := range []struct {
		remote, header string
		want           bool
	}{
		{"127.0.0.1:1", "", true}, {"127.9.9.9:1", "", true}, {"[::1]:1", "", true}, {"[::ffff:127.0.0.1]:1", "", true},
		{"192.0.2.1:1", "", false}, {"[2001:db8::1]:1", "", false}, {"", "", false}, {"@", "", false},
		{"127.0.0.1:1", "X-Forwarded-For", false}, {"127.0.0.1:1", "Forwarded", false}, {"127.0.0.1:1", "Via", false}, {"127.0.0.1:1", "X-Real-Ip", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if r.RemoteAddr = c.remote; c.header != "" {
			r.Header.Set(c.header, "x")
		}
		if got := caller.IsDirect(r); got != c.want {
			t.Errorf("%q %s: %v, want %v", c.remote, c.header, got, c.want)
		}
	}
}

// source answers everybody the same.
type source struct {
	c   *caller.Caller
	err error
}

func (s source) Identify(*http.Request) (*caller.Caller, error) { return s.c, s.err }

func TestFirst(t *testing.T) {
	a, b := &caller.Caller{Name: "a"}, &caller.Caller{Name: "b"}
	wrong := errors.New("wrong")
	for _, c := range []struct {
		sources []caller.Source
		want    *caller.Caller
		err     error
	}{
		{nil, nil, nil},
		{[]caller.Source{source{}, source{c: b}}, b, nil},
		{[]caller.Source{source{c: a}, source{err: wrong}}, a, nil},
		{[]caller.Source{source{err: wrong}, source{c: b}}, nil, wrong},
	} {
		if got, err := caller.First(c.sources...).Identify(shows()); got != c.want || err != c.err {
			t.Errorf("%v: %v, %v", c.sources, got, err)
		}
	}
}

func TestRights(t *testing.T) {
	if got := caller.All.String(); got != "acquire,read,break,once,onetime,admin" {
		t.Error(got)
	}
	if r, err := caller.ParseRights([]string{"once", "acquire"}); err != nil || r != caller.Once|caller.Acquire {
		t.Error(r, err)
	}
	if (caller.Admin).Has(caller.Read) {
		t.Error("admin has the other rights")
	}
}
