package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// TokenLeeway is how much the clocks of an issuer and of this host may differ.
const TokenLeeway = time.Minute

// algorithms are the algorithms with which an issuer may sign. They do not include none, nor
// those with a shared secret, such as HS256.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// Issuers has the keys of issuers.
type Issuers struct {
	log    *slog.Logger
	client *http.Client

	mu    sync.Mutex
	known map[string]*keys // by the URLs of the issuers
}

// NewIssuers returns Issuers that fetch keys over HTTPS. It sends nothing: keys are fetched when
// the first token arrives.
func NewIssuers(log *slog.Logger) *Issuers {
	client := &http.Client{
		Timeout: fetchTime, Transport: limited{http.DefaultTransport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the issuer sends elsewhere") },
	}
	return &Issuers{log: log, client: client, known: map[string]*keys{}}
}

// Verifier returns a verifier of an issuer's tokens, for caller.FileOptions. The keys of an
// issuer are kept when the file changes.
func (all *Issuers) Verifier(i caller.Issuer) (caller.Verifier, error) {
	if err := checkURL(i.URL); err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	if i.Audience == "" {
		return nil, errors.New("audience: it is empty")
	}
	takes := i.Algorithms
	if takes == nil {
		takes = []string{oidc.RS256, oidc.ES256}
	}
	for _, a := range takes {
		if !slices.Contains(algorithms, a) {
			return nil, fmt.Errorf("algorithms: %q: want some of %s", a, strings.Join(algorithms, ", "))
		}
	}
	if len(takes) == 0 {
		return nil, errors.New("algorithms: there are none")
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	k := all.known[i.URL]
	if k == nil {
		k = &keys{issuer: i.URL, client: all.client, log: all.log}
		all.known[i.URL] = k
	}
	return &verifier{keys: k, audience: i.Audience, algorithms: slices.Clone(takes)}, nil
}

// checkURL refuses a URL if others in the network could replace the keys that come from it.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return err
	case u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q: want https://HOST/PATH", text)
	case u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%q: want https", text)
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// A verifier checks the tokens of one issuer for one audience.
type verifier struct {
	keys       *keys
	audience   string
	algorithms []string
}

// Verify implements caller.Verifier.
func (v *verifier) Verify(ctx context.Context, token string) (map[string]any, error) {
	signature := &signature{keys: v.keys}
	config := &oidc.Config{ClientID: v.audience, SupportedSigningAlgs: v.algorithms, SkipExpiryCheck: true} // checkTimes has a leeway
	checked, err := oidc.NewVerifier(v.keys.issuer, signature, config).Verify(ctx, token)
	switch {
	case signature.err != nil:
		return nil, signature.err
	case err != nil && signature.good:
		return nil, caller.Wrong(fmt.Sprintf("the token is for somebody else: want the audience %q", v.audience))
	case err != nil:
		return nil, caller.Wrong("the token is malformed, or not signed by " + strings.Join(v.algorithms, " or "))
	}
	var claims map[string]any
	var times validity
	if err := errors.Join(checked.Claims(&claims), checked.Claims(&times)); err != nil {
		return nil, caller.Wrong("the token is malformed")
	}
	return claims, times.check(time.Now())
}

// validity is the period in which a token is valid, in seconds since 1970.
type validity struct {
	Expiry    float64  `json:"exp"`
	NotBefore *float64 `json:"nbf"`
	IssuedAt  *float64 `json:"iat"`
}

func (t *validity) check(now time.Time) error {
	at, leeway := float64(now.UnixMilli())/1000, TokenLeeway.Seconds()
	switch {
	case t.Expiry == 0:
		return caller.Wrong("the token has no expiry")
	case at > t.Expiry+leeway:
		return caller.Wrong("the token has expired")
	case t.NotBefore != nil && at < *t.NotBefore-leeway, t.IssuedAt != nil && at < *t.IssuedAt-leeway:
		return caller.Wrong("the token is not valid yet: look at the clocks")
	}
	return nil
}

// A signature is the result of checking the signature of one token.
type signature struct {
	keys *keys
	good bool
	err  error
}

// VerifySignature implements oidc.KeySet.
func (s *signature) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := s.keys.verify(ctx, token)
	s.good, s.err = err == nil, err
	return payload, err
}

// unavailable returns the error for keys that cannot be fetched.
func unavailable(issuer string, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op // without the URL, which is in the message already
	}
	return fmt.Errorf("the keys of %s: %w: %w", issuer, caller.ErrUnavailable, err)
}
