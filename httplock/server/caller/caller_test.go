package caller_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

func TestPassedOn(t *testing.T) {
	for _, header := range []string{"X-Forwarded-For", "Forwarded", "Via", "X-Real-Ip"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if got := caller.PassedOn(r); got != "" {
			t.Errorf("passed on, by %s", got)
		}
		if r.Header.Set(header, "x"); caller.PassedOn(r) != header {
			t.Errorf("%s: %q", header, caller.PassedOn(r))
		}
	}
}

// source gives every request the same result.
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
