package doctor

import (
	"context"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// newProof draws one that is of no secret.
func newProof() driver.Proof {
	return driver.Proof(lockinfo.NewLeaseID()) + driver.Proof(lockinfo.NewLeaseID())
}

// tryVault runs the operations on one-time tokens of its own.
func (s *survey) tryVault(ctx context.Context) {
	proof, revoked := newProof(), newProof().Digest()
	spent := proof.Digest()
	defer s.erase(ctx, s.store.Keys().Token(strings.Fields(keys.Vault), spent))
	defer s.erase(ctx, s.store.Keys().Token(strings.Fields(keys.Vault), revoked))
	redeem := func(ctx context.Context, granted bool) error {
		reply, err := s.Redeem(ctx, driver.RedeemRequest{Proof: proof, By: lockinfo.NewLeaseID()})
		ours := strings.HasPrefix(string(reply.Payload), "probe")
		return expect(err, reply.State == driver.Redeemed && reply.Granted == granted && ours == granted, reply.State)
	}
	revoke := func(ctx context.Context, before driver.VaultState) error {
		reply, err := s.Revoke(ctx, revoked)
		return expect(err, reply.State == before, reply.State)
	}
	s.try(ctx, "onetime", "deposit, peek, redeem and revoke do what they should",
		step{"deposit", func(ctx context.Context) error { return s.probeDeposit(ctx, spent, revoked) }},
		step{"peek", func(ctx context.Context) error {
			reply, err := s.Peek(ctx, proof)
			return expect(err, reply.State == driver.Fresh && reply.ExpiresIn > 0 && reply.ExpiresIn <= probeTTL, reply.State)
		}},
		step{"redeem", func(ctx context.Context) error { return redeem(ctx, true) }},
		step{"redeem", func(ctx context.Context) error { return redeem(ctx, false) }},
		step{"revoke", func(ctx context.Context) error { return revoke(ctx, driver.Fresh) }},
		step{"revoke", func(ctx context.Context) error { return revoke(ctx, driver.Revoked) }})
}

func (s *survey) probeDeposit(ctx context.Context, digests ...driver.Digest) error {
	for _, d := range digests {
		err := s.Deposit(ctx, driver.DepositRequest{
			Digest: d, By: lockinfo.NewLeaseID(), Payload: []byte("probe"), TTL: probeTTL, Memory: probeTTL,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
