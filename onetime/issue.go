package onetime

import (
	"bytes"
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/observe"
)

// Issue stores a payload, which may be empty, and returns the secret that
// redeems it once, for ttl from now: 10 ms to about ten years, by the store's
// clock. The payload is stored unencrypted, readable to all who can read the store.
//
// If there is an error, no token can be redeemed: holdfast.ErrInvalid for a
// payload that is too large or a ttl out of range, holdfast.ErrUnavailable, or
// ctx's error. If the store has kept the token nevertheless, it expires.
func (s *Service) Issue(ctx context.Context, payload []byte, ttl time.Duration) (secret string, err error) {
	if err := s.opts.checkIssue(payload, ttl); err != nil {
		return "", opError("issue", "", err)
	}
	if err := s.begin(); err != nil {
		return "", opError("issue", "", err)
	}
	secret = newSecret(systemRandom)
	d := proof(s.opts.Name, secret[len(prefix):len(prefix)+randomLen]).Digest()
	req := driver.DepositRequest{
		Digest: d, By: lockinfo.NewLeaseID(), TTL: ceilMS(ttl), Memory: ceilMS(s.opts.Memory),
		// A copy: after a failure the request may still be on its way.
		Payload: bytes.Clone(payload),
	}
	f := ask.Until(ctx, s.opts.RequestTimeout, func(ctx context.Context) error { return s.vault.Deposit(ctx, req) })
	if f != nil {
		return "", opError("issue", d, f.Harmless())
	}
	s.tell(ctx, observe.TokenIssued, d, nil)
	return secret, nil
}

// A Preview is what Peek returns.
type Preview struct {
	Payload   []byte
	ExpiresIn time.Duration // as of the store's answer
}

// Peek returns the preview of the payload of a secret, and redeems nothing. Mail
// scanners follow links: so call Peek for the page that a link leads to, and
// Redeem for a button on that page. Peek returns the errors of Redeem, except
// holdfast.ErrOutcomeUnknown: another try does no harm.
func (s *Service) Peek(ctx context.Context, secret string) (Preview, error) {
	random, err := parse(secret)
	if err != nil {
		return Preview{}, opError("peek", "", err)
	}
	p := proof(s.opts.Name, random)
	d := p.Digest()
	if err := s.open(); err != nil {
		return Preview{}, opError("peek", d, err)
	}
	reply, err := s.peek(ctx, p)
	if err == nil && reply.State != driver.Fresh {
		err = stateError(reply.State)
	}
	if err != nil {
		return Preview{}, opError("peek", d, err)
	}
	return Preview{Payload: reply.Payload, ExpiresIn: reply.ExpiresIn}, nil
}

func (s *Service) peek(ctx context.Context, p driver.Proof) (driver.VaultReply, error) {
	reply, f := ask.Answer(ctx, s.opts.RequestTimeout, s.vault.Peek, p)
	return reply, f.Harmless()
}

// Revoke makes sure that the token cannot be redeemed from now on, and deletes its
// payload. To revoke a token again is not an error; otherwise the errors are
// those of Redeem: ErrRedeemed means that it came too late.
func (s *Service) Revoke(ctx context.Context, secret string) error {
	random, err := parse(secret)
	if err != nil {
		return opError("revoke", "", err)
	}
	return s.revoke(ctx, proof(s.opts.Name, random).Digest())
}

// RevokeID does as Revoke, for a caller that kept the token's ID and not the secret.
func (s *Service) RevokeID(ctx context.Context, id string) error {
	d := driver.Digest(id)
	if !d.Valid() {
		return opError("revoke", "", ErrMalformed)
	}
	return s.revoke(ctx, d)
}

func (s *Service) revoke(ctx context.Context, d driver.Digest) error {
	if err := s.open(); err != nil {
		return opError("revoke", d, err)
	}
	reply, f := ask.Answer(ctx, s.opts.RequestTimeout, s.vault.Revoke, d)
	switch {
	case f != nil:
		return opError("revoke", d, f.Effective())
	case reply.State != driver.Fresh && reply.State != driver.Revoked: // INVARIANT I6: a repeat finds Revoked
		return opError("revoke", d, stateError(reply.State))
	}
	s.tell(ctx, observe.TokenRevoked, d, nil)
	return nil
}
