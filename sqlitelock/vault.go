package sqlitelock

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Deposit implements driver.Vault. The token survives a power cut, because its
// secret may already have been sent.
func (e *engine) Deposit(ctx context.Context, req driver.DepositRequest) error {
	return e.transactDurably(ctx, func(t *tx) error {
		k, err := t.token(req.Digest)
		switch {
		case err != nil:
			return err
		case k.state == driver.Unknown:
		case k.by == req.By:
			return nil // INVARIANT I6: a repeat
		default:
			return fmt.Errorf("%w: there is another one-time token with this secret: draw a new one", driver.ErrKindMismatch)
		}
		payload := append([]byte{}, req.Payload...) // not NULL
		return t.sql.run(depositSQL, t.on(req.Digest, req.By, payload, ceilMicros(req.TTL), ceilMicros(req.Memory))...)
	})
}

// Redeem implements driver.Vault. It survives a power cut, so that the payload is not handed
// out again.
func (e *engine) Redeem(ctx context.Context, req driver.RedeemRequest) (driver.VaultReply, error) {
	digest := req.Proof.Digest()
	return answer(ctx, e.transactDurably, func(t *tx) (driver.VaultReply, error) {
		k, err := t.token(digest)
		switch {
		case err != nil:
		case k.state == driver.Fresh:
			err = t.sql.run(redeemSQL, t.on(digest, req.By, ceilMicros(driver.RedeemGrace))...)
		case k.state == driver.Redeemed && k.taker == req.By && k.live: // INVARIANT I6
		default:
			return driver.VaultReply{State: k.state}, nil
		}
		return driver.VaultReply{State: driver.Redeemed, Granted: true, Payload: k.payload}, err
	})
}

// Peek implements driver.Vault. It does not wait for writers.
func (e *engine) Peek(ctx context.Context, proof driver.Proof) (driver.VaultReply, error) {
	return answer(ctx, e.query, func(r reader) (driver.VaultReply, error) {
		k, err := r.token(proof.Digest())
		if k.state != driver.Fresh {
			return driver.VaultReply{State: k.state}, err
		}
		return driver.VaultReply{State: k.state, Payload: k.payload, ExpiresIn: k.left}, err
	})
}

// Revoke implements driver.Vault. It survives a power cut.
func (e *engine) Revoke(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	return answer(ctx, e.transactDurably, func(t *tx) (driver.VaultReply, error) {
		k, err := t.token(digest)
		if err == nil && k.state == driver.Fresh {
			err = t.sql.run(revokeSQL, digest)
		}
		return driver.VaultReply{State: k.state}, err
	})
}

// Prune implements driver.Vault. INVARIANT I11: it reads at most twice limit rows, found by an
// index, in the order in which they are due.
func (e *engine) Prune(ctx context.Context, limit int) (deleted int, more bool, err error) {
	err = e.transact(ctx, func(t *tx) error {
		due := []any{t.bootID, t.now.bootMicros(), int64(t.now.micros), limit}
		if deleted, err = t.sql.affected(pruneSQL, due...); err != nil {
			return err
		}
		if err := t.sql.run(emptySQL, due...); err != nil {
			return err
		}
		due[3] = 1
		var any int
		more, err = t.sql.one(moreSQL, due, &any)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return deleted, more, nil
}

// SelfPruning implements driver.Vault.
func (e *engine) SelfPruning() bool { return false }

// A token is the state of a one-time token.
type token struct {
	by, taker lockinfo.LeaseID
	state     driver.VaultState
	live      bool          // it has a payload, until left has passed
	left      time.Duration // may be below 0 if not live
	payload   []byte
}

// on returns the arguments of a statement about one token.
func (r *reader) on(digest driver.Digest, more ...any) []any {
	return append([]any{digest, r.bootID, r.now.bootMicros(), int64(r.now.micros)}, more...)
}

// token reads the state of a one-time token. It is Unknown if there is no such token.
func (r *reader) token(digest driver.Digest) (k token, err error) {
	var left int64 // microseconds
	_, err = r.sql.one(vaultSQL, r.on(digest), &k.by, &k.state, &k.taker, &left, &k.live, &k.payload)
	k.left = time.Duration(left) * time.Microsecond
	return k, err
}

// bootMicros returns the instant of the boot-time clock in microseconds.
func (i instant) bootMicros() int64 { return i.boot / int64(time.Microsecond) }
