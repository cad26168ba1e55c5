package caller

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// An Issuer signs tokens (JWT) for callers that have no secret of their own, such as jobs
// of a CI system.
type Issuer struct {
	URL        string   `json:"issuer"`               // as the claim iss has it
	Audience   string   `json:"audience"`             // one that the claim aud must have
	Algorithms []string `json:"algorithms,omitempty"` // of signatures, as RS256; nil: what the Verifier takes
}

// A Verifier checks the tokens of one Issuer.
type Verifier interface {
	// Verify returns the claims of a token that the issuer has signed for the audience,
	// and that is valid now. An error should be a Wrong, or wrap ErrUnavailable.
	Verify(ctx context.Context, token string) (claims map[string]any, err error)
}

// An issuer is an entry for an Issuer in a file.
type issuer struct {
	Issuer
	Rules []rule `json:"rules"`
}

// A rule is the grant for tokens that have these claims, among others.
type rule struct {
	grant
	Claims map[string]string `json:"claims"`
}

// believed is an issuer with its rules, and the callers of the rules.
type believed struct {
	verifier Verifier
	rules    []rule
	callers  []*Caller // at the index of their rule
}

func (k *known) believe(i issuer, verifier func(Issuer) (Verifier, error)) error {
	switch {
	case verifier == nil:
		return errors.New("tokens of issuers cannot be checked here")
	case i.URL == "":
		return errors.New("issuer: it is empty")
	case k.issuers[i.URL] != nil:
		return errors.New("issuer: it is given twice")
	case i.Audience == "":
		return errors.New("audience: say which one tokens must be for; others are for other servers")
	case len(i.Rules) == 0:
		return errors.New("rules: there are none, so none of its tokens would be good for anything")
	}
	b := &believed{rules: i.Rules}
	for n, r := range i.Rules {
		c, err := r.caller()
		if err == nil && len(r.Claims) == 0 {
			err = errors.New("claims: there are none, so it would be for everybody whom the issuer knows")
		}
		if err != nil {
			return fmt.Errorf("rules[%d] (%q): %w", n, r.Name, err)
		}
		b.callers = append(b.callers, c)
	}
	var err error
	if b.verifier, err = verifier(i.Issuer); err != nil {
		return err
	}
	k.issuers[i.URL] = b
	return nil
}

// ofIssuer returns the caller of a token: that of the first rule whose claims the token has.
func (k *known) ofIssuer(ctx context.Context, token string) (*Caller, error) {
	b := k.issuers[claimedIssuer(token)]
	if b == nil {
		return nil, Wrong("the token is not one that the server knows, nor of an issuer that it believes")
	}
	claims, err := b.verifier.Verify(ctx, token)
	if err != nil {
		return nil, err
	}
	for n, r := range b.rules {
		if r.fits(claims) {
			c := *b.callers[n]
			c.Claims = logged(claims)
			return &c, nil
		}
	}
	return nil, Wrong("the token is valid, but no rule of the server has its claims")
}

// logged returns the claims that distinguish the jobs of one rule in the log, for GitHub
// Actions and GitLab CI.
func logged(claims map[string]any) map[string]string {
	const longest = 256 // bytes of a claim
	some := map[string]string{}
	for _, name := range []string{"sub", "repository", "run_id", "project_path", "pipeline_id", "job_id"} {
		if text, ok := claims[name].(string); ok {
			some[name] = text[:min(len(text), longest)]
		}
	}
	return some
}

func (r *rule) fits(claims map[string]any) bool {
	for name, want := range r.Claims {
		if got, ok := claims[name].(string); !ok || got != want {
			return false
		}
	}
	return true
}

// claimedIssuer returns the issuer that a token claims, unverified.
func claimedIssuer(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	body, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Issuer
}
