package caller_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// entry returns the JSON of a caller with the given token.
func entry(token, name, prefix string) string {
	return fmt.Sprintf(`{"name":%q,"sha256":"%x","prefixes":[%q],"rights":["acquire","read"]}`, name, sha256.Sum256([]byte(token)), prefix)
}

// write writes a file of callers.
func write(t *testing.T, path string, entries ...string) {
	t.Helper()
	text := `{"callers":[` + strings.Join(entries, ",") + `]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// shows returns a request with the given Authorization header, or without one.
func shows(authorization ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if len(authorization) > 0 {
		r.Header["Authorization"] = authorization
	}
	return r
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "callers.json")
	write(t, path, entry("secret-of-ci", "ci", "ci/"), entry("second", "ci", "ci/"), entry("secret-of-web", "web", ""))
	f, err := caller.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		request *http.Request
		name    string // "" if the caller is unknown
		wrong   string
	}{
		{shows("Bearer secret-of-ci"), "ci", ""},
		{shows("bearer  second "), "ci", ""},
		{shows("Bearer secret-of-web"), "web", ""},
		{shows(), "", ""},
		{shows("Bearer secret-of-c"), "", "not one that the server knows"},
		{shows("Bearer secret-of-ci2"), "", "not one that the server knows"},
		{shows("Bearer a.b.c"), "", "not one that the server knows"},
		{shows("Bearer "), "", "send one Authorization"},
		{shows("Basic secret-of-ci"), "", "send one Authorization"},
		{shows("secret-of-ci"), "", "send one Authorization"},
		{shows("Bearer secret-of-ci", "Bearer secret-of-web"), "", "send one Authorization"},
	} {
		got, err := f.Identify(c.request)
		var wrong caller.Wrong
		switch {
		case c.wrong != "":
			if !errors.As(err, &wrong) || got != nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret-of") {
				t.Errorf("%q: %v, %v, want %q", c.request.Header, got, err, c.wrong)
			}
		case c.name == "":
			if got != nil || err != nil {
				t.Errorf("%q: %v, %v, want nobody", c.request.Header, got, err)
			}
		case err != nil || got.Name != c.name || got.Rights != caller.Acquire|caller.Read:
			t.Errorf("%q: %v, %v, want %s", c.request.Header, got, err, c.name)
		}
	}
	if c, _ := f.Identify(shows("Bearer secret-of-ci")); !c.May(caller.Acquire, "ci/x") || c.May(caller.Acquire, "ci") || c.May(caller.Break, "ci/x") {
		t.Errorf("%+v", c)
	}
}

func TestWrongFiles(t *testing.T) {
	good := entry("x", "x", "")
	for text, why := range map[string]string{
		``:            "unexpected end",
		`{}x`:         "invalid character",
		`{"users":1}`: `field "users" is not known`,
		`{"callers":[{"name":"","uid":1,"prefixes":[""],"rights":["read"]}]}`:                      `callers[0] (""): name`,
		`{"callers":[{"name":"a","uid":1,"prefixes":[""]}]}`:                                       "it has none",
		`{"callers":[{"name":"a","uid":1,"rights":["read"]}]}`:                                     "prefixes",
		`{"callers":[{"name":"a","uid":1,"prefixes":[],"rights":["read"]}]}`:                       "prefixes",
		`{"callers":[{"name":"a","uid":1,"prefixes":[""],"rights":["write"]}]}`:                    `unknown right "write"`,
		`{"callers":[{"name":"a","prefixes":[""],"rights":["read"]}]}`:                             "either sha256 or uid",
		`{"callers":[{"name":"a","uid":-1,"prefixes":[""],"rights":["read"]}]}`:                    `field "callers.grant.uid"`,
		`{"callers":[{"name":"a","sha256":"secret","prefixes":[""],"rights":["read"]}]}`:           "never the token itself",
		strings.Replace(`{"callers":[`+good+`]}`, `"sha256":"`, `"sha256":"00`, 1):                 "never the token itself",
		strings.Replace(`{"callers":[`+good+`]}`, `"name"`, `"uid":7,"name"`, 1):                   "either sha256 or uid",
		`{"callers":[` + entry("", "a", "") + `]}`:                                                 "no token at all",
		`{"callers":[` + good + `,` + entry("x", "y", "") + `]}`:                                   `callers[1] ("y"): sha256: it is that of "x" already`,
		`{"callers":[{"Name":"a","uid":1,"prefixes":[""],"rights":["read"]}]}`:                     `it is "name"`,
		`{"callers":[{"name":"a","uid":1,"prefixes":[""],"rights":["read"],"rights":["break"]}]}`:  "is given twice",
		`{"callers":[],"issuers":[{"issuer":"https://ci.example.com","audience":"a","rules":[]}]}`: "cannot be checked here",
	} {
		path := filepath.Join(t.TempDir(), "callers.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(why, "grant.uid") {
			why = "uid" // encoding/json puts the name of an embedded struct into the path
		}
		if f, err := caller.Open(path, nil); f != nil || err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", text, err, why)
		}
	}
}

func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "callers.json")
		write(t, path, entry("old", "ci", ""))
		var log bytes.Buffer
		f, err := caller.Open(path, &caller.FileOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		want := func(token string, knows bool) {
			t.Helper()
			if c, err := f.Identify(shows("Bearer " + token)); (c != nil) != knows {
				t.Errorf("%s: %v, %v", token, c, err)
			}
		}
		want("old", true)
		write(t, path, entry("new", "ci", ""))
		time.Sleep(time.Second)
		want("old", false)
		want("new", true)

		write(t, path, `{"name":`)
		log.Reset()
		for range 3 {
			time.Sleep(time.Second)
			want("new", true)
		}
		if n := strings.Count(log.String(), "callers stay as they were"); n != 1 {
			t.Errorf("a wrong file is logged %d times, want once: %s", n, &log)
		}
		if err := f.Reload(); err == nil {
			t.Error("a wrong file is read again without an error")
		}

		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		want("new", true)
		if err := f.Reload(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a file that is gone: %v", err)
		}

		write(t, path, entry("third", "ci", ""))
		if err := f.Reload(); err != nil {
			t.Error(err)
		}
		want("third", true)
		want("new", false)
	})
}

func TestAdd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "callers.json")
	ci := caller.Caller{Name: "ci", Rights: caller.Acquire | caller.Once, Prefixes: []string{"ci/"}}
	first, err1 := caller.Add(path, ci)
	second, err2 := caller.Add(path, ci)
	admin, err3 := caller.Add(path, caller.Caller{Name: "ops", Rights: caller.All})
	if err := errors.Join(err1, err2, err3); err != nil || first == second || len(first) != 43 {
		t.Fatalf("%q, %q: %v", first, second, err)
	}
	f, err := caller.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{first, second} {
		if got, err := f.Identify(shows("Bearer " + token)); err != nil || !reflect.DeepEqual(*got, ci) {
			t.Errorf("%+v, %v, want %+v", got, err, ci)
		}
	}
	if got, err := f.Identify(shows("Bearer " + admin)); err != nil || !got.May(caller.Admin, "any/name") {
		t.Errorf("%+v, %v", got, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || bytes.Contains(text, []byte(first)) {
		t.Errorf("the file has the token itself (%v): %s", err, text)
	}
	for _, bad := range []caller.Caller{{Rights: caller.Read}, {Name: "x"}, {Name: "a\nb", Rights: caller.Read}} {
		if _, err := caller.Add(path, bad); err == nil {
			t.Errorf("%+v is added", bad)
		}
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(text, again) {
		t.Error("a refused caller changes the file")
	}
}

// verifier replaces the check of an issuer's tokens. It returns fixed claims.
type verifier struct{ claims map[string]any }

func (v verifier) Verify(_ context.Context, token string) (map[string]any, error) {
	if strings.HasSuffix(token, ".bad") {
		return nil, caller.Wrong("the signature is wrong")
	}
	return v.claims, nil
}

func TestRules(t *testing.T) {
	const url = "https://ci.example.com"
	text := `{"callers":[],"issuers":[{"issuer":"` + url + `","audience":"holdfast","algorithms":["RS256"],"rules":[
		{"claims":{"repository":"acme/shop","ref":"refs/heads/main"},"name":"shop-main","prefixes":["shop/"],"rights":["acquire"]},
		{"claims":{"repository":"acme/shop"},"name":"shop","prefixes":["shop/test/"],"rights":["acquire"]}]}]}`
	path := filepath.Join(t.TempDir(), "callers.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	token := func(issuer, signature string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"iss":%q}`, issuer)) + "." + signature
	}
	for _, c := range []struct {
		claims map[string]any
		token  string
		name   string // "" if the token is wrong
		wrong  string
	}{
		{map[string]any{"repository": "acme/shop", "ref": "refs/heads/main", "actor": "eve"}, token(url, "good"), "shop-main", ""},
		{map[string]any{"repository": "acme/shop", "ref": "refs/heads/x"}, token(url, "good"), "shop", ""},
		{map[string]any{"repository": "acme/shop", "ref": []any{"refs/heads/main"}}, token(url, "good"), "shop", ""},
		{map[string]any{"repository": "acme/shop2"}, token(url, "good"), "", "no rule"},
		{map[string]any{"repository": "Acme/shop"}, token(url, "good"), "", "no rule"},
		{map[string]any{"ref": "refs/heads/main"}, token(url, "good"), "", "no rule"},
		{map[string]any{"repository": "acme/shop"}, token(url, "bad"), "", "signature"},
		{map[string]any{"repository": "acme/shop"}, token(url+"/", "good"), "", "nor of an issuer"},
		{map[string]any{"repository": "acme/shop"}, "a.!.c", "", "nor of an issuer"},
		{map[string]any{"repository": "acme/shop"}, "a.e30x.c", "", "nor of an issuer"},
	} {
		f, err := caller.Open(path, &caller.FileOptions{Verifier: func(i caller.Issuer) (caller.Verifier, error) {
			if want := (caller.Issuer{URL: url, Audience: "holdfast", Algorithms: []string{"RS256"}}); !reflect.DeepEqual(i, want) {
				t.Errorf("%+v, want %+v", i, want)
			}
			return verifier{c.claims}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Identify(shows("Bearer " + c.token))
		var wrong caller.Wrong
		switch {
		case c.name != "":
			if err != nil || got.Name != c.name {
				t.Errorf("%v: %v, %v, want %s", c.claims, got, err, c.name)
			}
		case !errors.As(err, &wrong) || got != nil || !strings.Contains(err.Error(), c.wrong):
			t.Errorf("%v: %v, %v, want %q", c.claims, got, err, c.wrong)
		}
	}
}

func TestWrongIssuers(t *testing.T) {
	const rule = `{"claims":{"sub":"x"},"name":"x","prefixes":["x/"],"rights":["read"]}`
	for text, why := range map[string]string{
		`{"audience":"a","rules":[` + rule + `]}`:                                                                                   "issuer: it is empty",
		`{"issuer":"https://a","rules":[` + rule + `]}`:                                                                             "audience: say",
		`{"issuer":"https://a","audience":"a"}`:                                                                                     "rules: there are none",
		`{"issuer":"https://a","audience":"a","rules":[{"name":"x","prefixes":[""],"rights":["read"]}]}`:                            "claims: there are none",
		`{"issuer":"https://a","audience":"a","rules":[{"claims":{"sub":"x"},"name":"x","rights":["read"]}]}`:                       "prefixes",
		`{"issuer":"https://a","audience":"a","rules":[{"claims":{"sub":1},"name":"x","prefixes":[""],"rights":["read"]}]}`:         "claims",
		`{"issuer":"https://a","audience":"a","rules":[` + rule + `]},{"issuer":"https://a","audience":"b","rules":[` + rule + `]}`: "is given twice",
		`{"issuer":"https://no","audience":"a","rules":[` + rule + `]}`:                                                             "not that one",
	} {
		path := filepath.Join(t.TempDir(), "callers.json")
		if err := os.WriteFile(path, []byte(`{"callers":[],"issuers":[`+text+`]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := caller.Open(path, &caller.FileOptions{Verifier: func(i caller.Issuer) (caller.Verifier, error) {
			if i.URL == "https://no" {
				return nil, errors.New("not that one")
			}
			return verifier{}, nil
		}})
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", text, err, why)
		}
	}
}
