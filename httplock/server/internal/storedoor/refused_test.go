package storedoor_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-locks/holdfast/httplock"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// somebody identifies every request as the same caller.
type somebody struct{ caller.Caller }

func (s *somebody) Identify(*http.Request) (*caller.Caller, error) { return &s.Caller, nil }

// TestRefused checks that the server refuses a caller who may not read every name.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, who := newStore(), &somebody{}
		s := open(t, e, server.Options{Callers: who})
		for _, c := range []caller.Caller{{Name: "ann", Rights: caller.All &^ caller.Read}, {Name: "ann", Rights: caller.All, Prefixes: []string{"app/"}}} {
			who.Caller = c
			if w := s.send(); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"code":"not-permitted"`) {
				t.Errorf("%+v: %d %s", c, w.Code, w.Body)
			}
		}
		if trips, diagnoses := e.asked(); trips+diagnoses > 0 {
			t.Errorf("%d round trips, %d diagnoses", trips, diagnoses)
		}
		who.Caller = caller.Caller{Name: "ann", Rights: caller.Read}
		s.want("5 ms; warn 0 s ago")
	})
}

// TestStoreIsAServer checks the diagnosis of a store behind two servers.
func TestStoreIsAServer(t *testing.T) {
	e := newStore()
	behind := open(t, e, server.Options{})
	h := httptest.NewUnstartedServer(behind.server)
	server.Configure(h.Config)
	h.Start()
	defer h.Close()
	engine, err := httplock.Open(t.Context(), h.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	v := open(t, engine, server.Options{Store: h.URL}).show()
	if !v.Answers || v.Store != h.URL || v.Diagnosis == nil || v.Diagnosis.Findings[0].Server != "10.0.0.1:6379" || v.Undiagnosed != "" {
		t.Errorf("%+v", v)
	}
	if trips, diagnoses := e.asked(); trips != 1 || diagnoses != 1 {
		t.Errorf("the store was asked %d times, and diagnosed %d times", trips, diagnoses)
	}
}
