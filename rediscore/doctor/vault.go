package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// newDigest draws one that is of no secret.
func newDigest() driver.Digest {
	return driver.Digest(driver.NewLeaseID()) + driver.Digest(driver.NewLeaseID())
}

// tryVault runs the operations on one-time tokens of its own.
func (s *survey) tryVault(ctx context.Context) {
	spent, revoked := newDigest(), newDigest()
	defer s.erase(ctx, s.store.Keys().Token(keys.Vault(), spent))
	defer s.erase(ctx, s.store.Keys().Token(keys.Vault(), revoked))
	for _, step := range []struct {
		what string
		run  func(context.Context) error
	}{
		{"deposit", func(ctx context.Context) error { return s.probeDeposit(ctx, spent, revoked) }},
		{"peek", func(ctx context.Context) error { return s.probePeek(ctx, spent) }},
		{"redeem", func(ctx context.Context) error { return s.probeRedeem(ctx, spent) }},
		{"revoke", func(ctx context.Context) error { return s.probeRevoke(ctx, revoked) }},
	} {
		limited, cancel := context.WithTimeout(ctx, Limit)
		err := step.run(limited)
		cancel()
		if err != nil {
			s.failed("onetime", "", fmt.Errorf("%s fails: %w", step.what, err))
			return
		}
	}
	s.found(driver.OK, "onetime", "", "deposit, peek, redeem and revoke do what they should")
}

func (s *survey) probeDeposit(ctx context.Context, digests ...driver.Digest) error {
	for _, d := range digests {
		err := s.Deposit(ctx, driver.DepositRequest{
			Digest: d, By: driver.NewLeaseID(), Payload: []byte("probe"), TTL: probeTTL, Memory: probeTTL,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *survey) probePeek(ctx context.Context, d driver.Digest) error {
	reply, err := s.Peek(ctx, d)
	if err == nil && (reply.State != driver.Fresh || reply.ExpiresIn <= 0 || reply.ExpiresIn > probeTTL) {
		err = errWrong(reply.State)
	}
	return err
}

func (s *survey) probeRedeem(ctx context.Context, d driver.Digest) error {
	for _, granted := range []bool{true, false} {
		reply, err := s.Redeem(ctx, driver.RedeemRequest{Digest: d, By: driver.NewLeaseID()})
		if err != nil {
			return err
		}
		if reply.State != driver.Redeemed || reply.Granted != granted || granted != strings.HasPrefix(string(reply.Payload), "probe") {
			return errWrong(reply.State)
		}
	}
	return nil
}

func (s *survey) probeRevoke(ctx context.Context, d driver.Digest) error {
	for _, before := range []driver.VaultState{driver.Fresh, driver.Revoked} {
		reply, err := s.Revoke(ctx, d)
		if err == nil && reply.State != before {
			err = errWrong(reply.State)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
