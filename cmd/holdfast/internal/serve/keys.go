package serve

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

const (
	// KeysLast is how long fetched keys stay valid while the issuer is unreachable. If it is
	// reachable, the first request after keysFresh replaces them, and keys that it has withdrawn
	// become invalid.
	KeysLast = time.Hour

	// keysFresh is the age at which a request has the keys fetched again, in the background.
	keysFresh = 5 * time.Minute

	// fetchPause is the least time between attempts to fetch keys, so that not every wrong token
	// causes a request to the issuer.
	fetchPause = 15 * time.Second

	// fetchTime is how long the issuer may take to answer.
	fetchTime = 5 * time.Second

	// fetchLimit is how many bytes a response may have.
	fetchLimit = 1 << 20
)

// keys are the keys with which an issuer signs tokens.
type keys struct {
	issuer string
	client *http.Client
	log    *slog.Logger

	mu      sync.Mutex
	set     *oidc.StaticKeySet
	fetched time.Time // when set was fetched
	tried   time.Time // when the last attempt to fetch them ended
	failed  error     // the error of that attempt
	running chan struct{}
}

var errWrongSignature error = caller.Wrong("the token is not signed by a key of its issuer")

// verify returns the payload of a token. It fetches the keys if no valid key has signed the
// token: the issuer may have a new key.
func (k *keys) verify(ctx context.Context, token string) ([]byte, error) {
	if payload := k.try(ctx, token); payload != nil {
		return payload, nil
	}
	select {
	case <-k.fetch():
	case <-ctx.Done():
		return nil, unavailable(k.issuer, ctx.Err())
	}
	if payload := k.try(ctx, token); payload != nil {
		return payload, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed != nil {
		return nil, unavailable(k.issuer, k.failed)
	}
	return nil, errWrongSignature
}

// try returns the payload of a token that a valid key has signed, or nil.
func (k *keys) try(ctx context.Context, token string) []byte {
	k.mu.Lock()
	set, age := k.set, time.Since(k.fetched)
	k.mu.Unlock()
	if set == nil || age > KeysLast {
		return nil
	}
	payload, err := set.VerifySignature(ctx, token)
	if err != nil {
		return nil
	}
	if age > keysFresh {
		k.fetch()
	}
	return payload
}

// fetch starts to fetch the keys, unless a fetch is running or ended a moment ago. The channel is
// closed when no fetch is running.
func (k *keys) fetch() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running != nil {
		return k.running
	}
	over := make(chan struct{})
	if !k.tried.IsZero() && time.Since(k.tried) < fetchPause {
		close(over)
		return over
	}
	k.running = over
	go func() { // ends after fetchTime
		defer close(over)
		set, err := k.get()
		k.mu.Lock()
		defer k.mu.Unlock()
		k.tried, k.failed, k.running = time.Now(), err, nil
		if err != nil {
			k.log.Warn("the keys of an issuer cannot be fetched", "issuer", k.issuer, "error", err)
			return
		}
		k.set, k.fetched = set, k.tried
	}()
	return over
}

// get fetches the URL of the keys from the issuer, and then the keys.
func (k *keys) get() (*oidc.StaticKeySet, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.Background(), k.client), fetchTime)
	defer cancel()
	provider, err := oidc.NewProvider(ctx, k.issuer)
	if err != nil {
		return nil, err
	}
	var at struct {
		URL string `json:"jwks_uri"`
	}
	if err := provider.Claims(&at); err != nil {
		return nil, err
	}
	if err := checkURL(at.URL); err != nil {
		return nil, fmt.Errorf("jwks_uri: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.URL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := k.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", at.URL, resp.Status)
	}
	var set jose.JSONWebKeySet
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil {
		return nil, fmt.Errorf("%s: %w", at.URL, err)
	}
	return public(set)
}

// public returns the public keys of set that are meant for signatures.
func public(set jose.JSONWebKeySet) (*oidc.StaticKeySet, error) {
	var all []crypto.PublicKey
	for _, key := range set.Keys {
		if key.Valid() && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			all = append(all, key.Key)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("it has no public keys for signatures")
	}
	return &oidc.StaticKeySet{PublicKeys: all}, nil
}

// A limited bounds response bodies by fetchLimit.
type limited struct{ http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, fetchLimit)
	}
	return resp, err
}
