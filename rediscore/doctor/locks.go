package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// probeTTL is the TTL of the leases and tokens that the checks make.
const probeTTL = 10 * time.Second

// tryLocks tries the operations on a lock with a random name.
func (s *survey) tryLocks(ctx context.Context) {
	name := driver.ProbePrefix + string(lockinfo.NewLeaseID())
	// The name has never been used and will not be used again, so it needs no last token.
	defer s.erase(ctx, s.store.Keys().Of(strings.Fields(keys.State), name, ""))
	s.try(ctx, "locks", "acquire, wait, refresh, extend, downgrade, inspect, release, complete and recall do what they should", s.lockSteps(name)...)
}

// lockSteps returns the operations on a lock. One lease ID acquires the lock; another waits for it
// and is handed it.
func (s *survey) lockSteps(name string) []step {
	first := driver.AcquireRequest{
		Name: name, LeaseID: lockinfo.NewLeaseID(), TTL: probeTTL, Holder: lockinfo.Holder{Label: "holdfast doctor"},
	}
	second := first
	second.LeaseID, second.Queue, second.WaiterTTL = lockinfo.NewLeaseID(), true, probeTTL
	var token uint64
	refresh := func(ctx context.Context) driver.RefreshReply {
		return s.Refresh(ctx, []driver.RefreshRequest{{Name: name, LeaseID: second.LeaseID, WaiterTTL: probeTTL}})[0]
	}
	return []step{
		{"acquire", func(ctx context.Context) error {
			reply, err := s.Acquire(ctx, first)
			token = reply.Token
			return expect(err, reply.Outcome == driver.Granted, reply)
		}},
		{"wait", func(ctx context.Context) error {
			reply, err := s.Acquire(ctx, second)
			return expect(err, reply.Outcome == driver.Held && reply.Place == 1, reply)
		}},
		{"refresh", func(ctx context.Context) error {
			reply := refresh(ctx)
			return expect(reply.Err, reply.Outcome == driver.Held && reply.Place == 1, reply)
		}},
		{"extend", func(ctx context.Context) error {
			return s.Extend(ctx, []driver.ExtendRequest{{Name: name, LeaseID: first.LeaseID, TTL: 2 * probeTTL}})[0]
		}},
		{"downgrade", func(ctx context.Context) error {
			return s.Downgrade(ctx, driver.DowngradeRequest{Name: name, LeaseID: first.LeaseID})
		}},
		{"inspect", func(ctx context.Context) error {
			lock, err := s.Inspect(ctx, name)
			shared := lock.Mode == lockinfo.Shared && len(lock.Holders) == 1 && lock.Holders[0].Token == token
			return expect(err, shared && lock.QueueLength == 1, lock)
		}},
		{"release", func(ctx context.Context) error { // hands the lock over to the waiter
			if err := s.Release(ctx, driver.ReleaseRequest{Name: name, LeaseID: first.LeaseID}); err != nil {
				return err
			}
			reply := refresh(ctx)
			return expect(reply.Err, reply.Outcome == driver.Granted && reply.Token > token, reply)
		}},
		{"complete", func(ctx context.Context) error {
			return s.Complete(ctx, driver.CompleteRequest{
				Name: name, LeaseID: second.LeaseID, Record: []byte("probe"), Retention: probeTTL,
			})
		}},
		{"recall", func(ctx context.Context) error {
			record, found, err := s.Recall(ctx, name)
			return expect(err, found && strings.HasSuffix(string(record.Data), "probe"), found)
		}},
	}
}

// newProof returns a random proof that belongs to no secret.
func newProof() driver.Proof {
	return driver.Proof(lockinfo.NewLeaseID()) + driver.Proof(lockinfo.NewLeaseID())
}

// tryVault tries the operations on its own one-time tokens.
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
