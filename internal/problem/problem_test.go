package problem_test

import (
	"net/http/httptest"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/problem"
	"github.com/holdfast-locks/holdfast/wire"
)

func TestWrite(t *testing.T) {
	for _, c := range []struct {
		problem wire.Problem
		want    string
	}{
		{
			wire.Problem{Status: 409, Code: "lock-held", Detail: `held by "web-3"`},
			`{"type":"about:blank","title":"Conflict","status":409,"detail":"held by \"web-3\"","code":"lock-held"}`,
		},
		{
			wire.Problem{Status: 410, Code: "response_not_kept", Type: "https://example.com/response_not_kept", ResponseStatus: 201},
			`{"type":"https://example.com/response_not_kept","title":"Gone","status":410,"detail":"","code":"response_not_kept","response_status":201}`,
		},
		{
			wire.Problem{Status: 412, Code: "token_stale", Token: 33, Current: 34},
			`{"type":"about:blank","title":"Precondition Failed","status":412,"detail":"","code":"token_stale","token":33,"current":34}`,
		},
	} {
		w := httptest.NewRecorder()
		problem.Write(w, c.problem)
		if w.Code != c.problem.Status || w.Header().Get("Content-Type") != "application/problem+json" || w.Body.String() != c.want+"\n" {
			t.Errorf("%d, %s\n%s, want\n%s", w.Code, w.Header(), w.Body, c.want)
		}
	}
}
