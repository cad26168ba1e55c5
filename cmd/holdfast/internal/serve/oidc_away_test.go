package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"crypto/rand"
	"crypto/rsa"
	"encoding/json"

	"github.com/go-jose/go-jose/v4"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// inside is an issuer in the form of a RoundTripper, so that an hour passes in no time.
type inside struct {
	keys  []jose.JSONWebKey
	away  bool
	asked int
}

func (i *inside) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.away {
		return nil, errors.New("no route to host")
	}
	var body any = jose.JSONWebKeySet{Keys: i.keys}
	if strings.HasPrefix(r.URL.Path, "/.well-known") {
		body = map[string]string{"issuer": "https://ci.example.com", "jwks_uri": "https://ci.example.com/keys"}
	} else {
		i.asked++
	}
	text, _ := json.Marshal(body)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text)))}, nil
}

// TestIssuerIsAway checks that known keys are accepted for an hour without their issuer, and that a
// new key is found as soon as the issuer is back.
func TestIssuerIsAway(t *testing.T) {
	first, err1 := rsa.GenerateKey(rand.Reader, 2048)
	second, err2 := rsa.GenerateKey(rand.Reader, 2048)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		i := &inside{keys: []jose.JSONWebKey{{Key: &first.PublicKey}}}
		all := NewIssuers(slog.New(slog.DiscardHandler))
		all.client.Transport = limited{i}
		verify := func(key *rsa.PrivateKey) error {
			v, err := all.Verifier(caller.Issuer{URL: "https://ci.example.com", Audience: "holdfast"}) // a new one, as after a change of the file
			if err != nil {
				t.Fatal(err)
			}
			_, err = v.Verify(context.Background(), signed(t, key))
			synctest.Wait()
			return err
		}
		good := func(key *rsa.PrivateKey) {
			t.Helper()
			if err := verify(key); err != nil {
				t.Errorf("after %s: %v", time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), err)
			}
		}
		unknown := func(key *rsa.PrivateKey) {
			t.Helper()
			if err := verify(key); !errors.Is(err, caller.ErrUnavailable) {
				t.Errorf("%v, want that it is not known", err)
			}
		}
		i.away = true
		unknown(first) // never seen
		i.away = false
		time.Sleep(fetchPause)
		good(first)
		for range 100 {
			good(first)
		}
		if i.asked != 1 {
			t.Errorf("asked %d times, want once", i.asked)
		}
		if err := verify(second); err != errWrongSignature {
			t.Errorf("an unknown key: %v", err)
		}
		i.keys = []jose.JSONWebKey{{Key: &second.PublicKey}} // from now on
		time.Sleep(fetchPause)
		good(second)
		if err := verify(first); err != errWrongSignature {
			t.Errorf("a key that was given up: %v", err)
		}

		i.away = true
		for range 59 {
			time.Sleep(time.Minute)
			good(second)
		}
		unknown(first)
		time.Sleep(2 * time.Minute)
		unknown(second) // its key may have been withdrawn since
		i.away = false
		time.Sleep(fetchPause)
		good(second)

		i.keys = []jose.JSONWebKey{{Key: &first.PublicKey}}
		time.Sleep(keysFresh + time.Second)
		good(second) // and meanwhile the keys are fetched
		if err := verify(second); err != errWrongSignature {
			t.Errorf("a key that was given up counts on: %v", err)
		}
	})
}

// signed returns a token that is valid now.
func signed(t *testing.T, key *rsa.PrivateKey) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	claims, _ := json.Marshal(map[string]any{"iss": "https://ci.example.com", "aud": "holdfast", "exp": time.Now().Add(time.Minute).Unix()})
	object, err := signer.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	text, err := object.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestPrivateKeys checks that an issuer that shows a private key, or the wrong kind of key, is not
// trusted.
func TestPrivateKeys(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]jose.JSONWebKey{
		"private":        {Key: key},
		"secret":         {Key: []byte("everybody knows")},
		"for encryption": {Key: &key.PublicKey, Use: "enc"},
	} {
		if _, err := public(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{k}}); err == nil {
			t.Errorf("%s: it is believed", name)
		}
	}
	many := limited{roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{Body: io.NopCloser(endless{})}, nil
	})}
	resp, err := many.RoundTrip(nil)
	if n, _ := io.Copy(io.Discard, resp.Body); err != nil || n != fetchLimit {
		t.Errorf("%d bytes of an answer that never ends are read", n)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
