package serve_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/serve"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// An issuer issues tokens for tests.
type issuer struct {
	*httptest.Server
	rsa   *rsa.PrivateKey
	ec    *ecdsa.PrivateKey
	asked atomic.Int32 // counts requests for its keys
	away  atomic.Bool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	var err1, err2 error
	i.rsa, err1 = rsa.GenerateKey(rand.Reader, 2048)
	i.ec, err2 = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"none", "HS256", "RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.asked.Add(1)
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
			{Key: &i.rsa.PublicKey, KeyID: "r", Use: "sig"}, {Key: &i.ec.PublicKey, KeyID: "e"},
		}})
	})
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.away.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// claims returns the claims of a good token, with some changed; nil deletes a claim.
func (i *issuer) claims(other map[string]any) map[string]any {
	all := map[string]any{
		"iss": i.URL, "aud": []string{"other", "holdfast"}, "sub": "repo:acme/shop", "repository": "acme/shop",
		"iat": time.Now().Unix(), "nbf": time.Now().Unix(), "exp": time.Now().Add(5 * time.Minute).Unix(),
	}
	maps.Copy(all, other)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// token returns a token with an algorithm in its header and these claims, signed by sign.
func token(alg string, claims map[string]any, sign func(digest []byte, text string) []byte) string {
	body, _ := json.Marshal(claims)
	text := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":%q,"typ":"JWT"}`, alg)) + "." + base64.RawURLEncoding.EncodeToString(body)
	digest := sha256.Sum256([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(sign(digest[:], text))
}

func byRSA(key *rsa.PrivateKey) func([]byte, string) []byte {
	return func(digest []byte, _ string) []byte {
		sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest)
		if err != nil {
			panic(err)
		}
		return sig
	}
}

func byEC(key *ecdsa.PrivateKey) func([]byte, string) []byte {
	return func(digest []byte, _ string) []byte {
		r, s, err := ecdsa.Sign(rand.Reader, key, digest)
		if err != nil {
			panic(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
}

func byNobody([]byte, string) []byte { return nil }

// bySecret signs with the public key as the secret, which is not a secret.
func bySecret(key *rsa.PublicKey, form string) func([]byte, string) []byte {
	der, _ := x509.MarshalPKIXPublicKey(key)
	secret := der
	if form == "pem" {
		secret = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	}
	return func(_ []byte, text string) []byte {
		mac := hmac.New(sha256.New, secret)
		_, _ = io.WriteString(mac, text)
		return mac.Sum(nil)
	}
}

var quiet = slog.New(slog.DiscardHandler)

func (i *issuer) verifier(t *testing.T, algorithms ...string) caller.Verifier {
	t.Helper()
	v, err := serve.NewIssuers(quiet).Verifier(caller.Issuer{URL: i.URL, Audience: "holdfast", Algorithms: algorithms})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerify(t *testing.T) {
	i, foreign := newIssuer(t), newIssuer(t)
	v := i.verifier(t)
	since := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	good := byRSA(i.rsa)
	for name, c := range map[string]struct {
		token string
		wrong string // "" if it is good
	}{
		"RS256":                      {token("RS256", i.claims(nil), good), ""},
		"ES256":                      {token("ES256", i.claims(nil), byEC(i.ec)), ""},
		"one audience":               {token("RS256", i.claims(map[string]any{"aud": "holdfast"}), good), ""},
		"expired, within the leeway": {token("RS256", i.claims(map[string]any{"exp": since(-50 * time.Second)}), good), ""},
		"early, within the leeway":   {token("RS256", i.claims(map[string]any{"nbf": since(50 * time.Second), "iat": since(50 * time.Second)}), good), ""},
		"without nbf and iat":        {token("RS256", i.claims(map[string]any{"nbf": nil, "iat": nil}), good), ""},

		"expired":                  {token("RS256", i.claims(map[string]any{"exp": since(-70 * time.Second)}), good), "has expired"},
		"never expires":            {token("RS256", i.claims(map[string]any{"exp": nil}), good), "no expiry"},
		"not valid yet":            {token("RS256", i.claims(map[string]any{"nbf": since(70 * time.Second)}), good), "not valid yet"},
		"issued in the future":     {token("RS256", i.claims(map[string]any{"iat": since(time.Hour)}), good), "not valid yet"},
		"foreign key":              {token("RS256", i.claims(nil), byRSA(foreign.rsa)), "not signed by a key of its issuer"},
		"foreign issuer":           {token("RS256", i.claims(map[string]any{"iss": foreign.URL}), byRSA(foreign.rsa)), "not signed by a key of its issuer"},
		"signed for another":       {token("RS256", i.claims(map[string]any{"iss": foreign.URL}), good), "for somebody else"},
		"other audience":           {token("RS256", i.claims(map[string]any{"aud": "holdfast2"}), good), "for somebody else"},
		"no audience":              {token("RS256", i.claims(map[string]any{"aud": nil}), good), "for somebody else"},
		"unsigned":                 {token("none", i.claims(nil), byNobody), "malformed, or not signed by RS256 or ES256"},
		"None":                     {token("None", i.claims(nil), byNobody), "malformed, or not signed"},
		"signature cut off":        {token("RS256", i.claims(nil), byNobody), "not signed by a key"},
		"HS256 by the public key":  {token("HS256", i.claims(nil), bySecret(&i.rsa.PublicKey, "der")), "malformed, or not signed"},
		"HS256 by the key as text": {token("HS256", i.claims(nil), bySecret(&i.rsa.PublicKey, "pem")), "malformed, or not signed"},
		"another algorithm":        {token("RS512", i.claims(nil), good), "malformed, or not signed"},
		"RS256 named ES256":        {token("ES256", i.claims(nil), good), "not signed by a key"},
		"changed claims":           {changed(token("RS256", i.claims(nil), good)), "not signed by a key"},
		"not a token":              {"a.b.c", "malformed"},
		"times that are text":      {token("RS256", i.claims(map[string]any{"exp": "never"}), good), "for somebody else"},
	} {
		claims, err := v.Verify(t.Context(), c.token)
		var wrong caller.Wrong
		switch {
		case c.wrong == "":
			if err != nil || claims["repository"] != "acme/shop" {
				t.Errorf("%s: %v, %v", name, claims, err)
			}
		case !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), c.token):
			t.Errorf("%s: %v, want %q", name, err, c.wrong)
		}
	}
	if n := i.asked.Load(); n > 2 {
		t.Errorf("the issuer was asked %d times because of wrong tokens", n)
	}
}

// changed returns a token whose claims are not those that were signed.
func changed(token string) string {
	parts := strings.Split(token, ".")
	body, _ := base64.RawURLEncoding.DecodeString(parts[1])
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(body), "acme/shop", "acme/bank", 1)))
	return strings.Join(parts, ".")
}

func TestWrongIssuers(t *testing.T) {
	for want, i := range map[string]caller.Issuer{
		"want https":            {URL: "http://ci.example.com", Audience: "a"},
		"want https://":         {URL: "ci.example.com", Audience: "a"},
		"audience":              {URL: "https://ci.example.com"},
		`"none": want some of`:  {URL: "https://ci.example.com", Audience: "a", Algorithms: []string{"RS256", "none"}},
		`"HS256": want some of`: {URL: "https://ci.example.com", Audience: "a", Algorithms: []string{"HS256"}},
		"there are none":        {URL: "https://ci.example.com", Audience: "a", Algorithms: []string{}},
	} {
		if _, err := serve.NewIssuers(quiet).Verifier(i); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", i, err, want)
		}
	}
}
