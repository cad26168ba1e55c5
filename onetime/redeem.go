package onetime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/observe"
)

// lockTTL is how long a process blocks the others if it dies in the middle of a
// redeem or of a step of pruning.
const lockTTL = 10 * time.Second

// Redeem returns the payload of a secret, exactly once however many calls redeem
// it at the same time.
//
// A token that cannot be redeemed is ErrMalformed, ErrUnknown, ErrExpired, ErrRevoked
// or ErrRedeemed. Show end users one and the same message for all
// of them. After holdfast.ErrUnavailable, and after ctx's error, the token is
// unchanged. holdfast.ErrOutcomeUnknown means that it may have been redeemed
// but the store did not answer: see RedeemOptions.RequestID.
func (s *Service) Redeem(ctx context.Context, secret string) (payload []byte, err error) {
	return s.RedeemWith(ctx, secret, nil)
}

// RedeemWith is Redeem with options. It also returns ErrTooManyAttempts.
func (s *Service) RedeemWith(ctx context.Context, secret string, opts *RedeemOptions) (payload []byte, err error) {
	o, err := opts.resolve()
	if err != nil {
		return nil, opError("redeem", "", err)
	}
	if err := s.failures.enter(ctx, o.Caller); err != nil {
		s.tell(ctx, observe.TokenRefused, "", err)
		return nil, opError("redeem", "", err)
	}
	defer func() { s.failures.leave(o.Caller, isRefusal(err)) }()

	var d driver.Digest
	random, err := parse(secret)
	if err == nil {
		p := proof(s.opts.Name, random)
		d = p.Digest()
		payload, err = s.redeem(ctx, driver.RedeemRequest{Proof: p, By: o.by()})
	}
	if err != nil {
		s.tell(ctx, observe.TokenRefused, d, err)
		return nil, opError("redeem", d, err)
	}
	s.tell(ctx, observe.TokenRedeemed, d, nil)
	return payload, nil
}

// by returns the ID under which the store knows the request. Repeats have the same ID.
func (o *RedeemOptions) by() lockinfo.LeaseID {
	if o.RequestID == "" {
		return lockinfo.NewLeaseID()
	}
	sum := sha256.Sum256([]byte("holdfast one-time token request\n" + o.RequestID))
	return lockinfo.LeaseID(hex.EncodeToString(sum[:16]))
}

func (s *Service) redeem(ctx context.Context, req driver.RedeemRequest) ([]byte, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	if !s.isPruned {
		return s.redeemUnlocked(ctx, req)
	}
	// Only tokens that exist are locked: a lock leaves its last fencing
	// token in the store for a day, and any client can make up secrets.
	reply, err := s.peek(ctx, req.Proof)
	switch {
	case err != nil:
		return nil, err
	case reply.State == driver.Fresh:
		return s.redeemLocked(ctx, req)
	case reply.State == driver.Redeemed: // maybe by an earlier copy of this request
		return s.redeemUnlocked(ctx, req)
	}
	return nil, stateError(reply.State)
}

// redeemLocked redeems under nested locks: the collection's, which all redeems
// share, so that nothing is pruned meanwhile, and the token's own. It is the
// example of docs/waiting.md.
//
// The locks keep order; the guarantee does not depend on them. The store decides
// in one step which request gets the payload, so a lost lock does no harm, and
// one write would do instead of a peek, two acquires, a redeem and two releases.
// With the locks a redeem never meets a step of pruning, which has the store to
// itself while it deletes. And requests for the same token wait in a queue
// instead of at the store's write.
func (s *Service) redeemLocked(ctx context.Context, req driver.RedeemRequest) ([]byte, error) {
	outer, err := s.client.Acquire(ctx, s.opts.Name, &holdfast.AcquireOptions{
		Mode: holdfast.Shared, TTL: lockTTL, Reason: "redeem a one-time token",
	})
	if err != nil {
		return nil, err
	}
	defer outer.Release(ctx)
	inner, err := s.client.Acquire(ctx, s.itemLock(req.Proof.Digest()), &holdfast.AcquireOptions{
		TTL: lockTTL, Reason: "redeem this one-time token",
	})
	if err != nil {
		return nil, err
	}
	defer inner.Release(ctx)
	return s.redeemUnlocked(ctx, req)
}

// itemLock returns the name of the lock on one token.
func (s *Service) itemLock(d driver.Digest) string { return s.opts.Name + "/" + string(d[:32]) }

func (s *Service) redeemUnlocked(ctx context.Context, req driver.RedeemRequest) ([]byte, error) {
	reply, f := ask.Answer(ctx, s.opts.RequestTimeout, s.vault.Redeem, req)
	switch {
	case f != nil:
		return nil, f.Effective()
	case !reply.Granted:
		return nil, stateError(reply.State)
	}
	return reply.Payload, nil
}
