package pglock

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/holdfast-locks/holdfast/driver"
)

// Deposit implements driver.Vault.
func (e *engine) Deposit(ctx context.Context, req driver.DepositRequest) error {
	var other int32
	err := e.call(ctx, waiting, "deposit", []any{
		string(req.Digest), string(req.By), notNull(req.Payload), micros(req.TTL), micros(req.Memory),
	}, &other)
	if err == nil && other != 0 {
		err = fmt.Errorf("%w: there is another one-time token with this secret: draw a new one", driver.ErrKindMismatch)
	}
	return err
}

// Redeem implements driver.Vault.
func (e *engine) Redeem(ctx context.Context, req driver.RedeemRequest) (reply driver.VaultReply, err error) {
	err = e.call(ctx, waiting, "redeem", []any{string(req.Proof.Digest()), string(req.By)}, &reply.State, &reply.Granted, &reply.Payload)
	return reply, err
}

// Peek implements driver.Vault.
func (e *engine) Peek(ctx context.Context, proof driver.Proof) (reply driver.VaultReply, err error) {
	err = e.query(ctx, waiting, "SELECT state, payload, expires_in FROM "+e.name+".token($1, "+e.name+".clock())",
		[]any{string(proof.Digest())}, func(rows pgx.Rows) error {
			var state, left zeronull.Int8
			var payload []byte
			err := rows.Scan(&state, &payload, &left)
			if reply.State = driver.VaultState(state); reply.State == driver.Fresh {
				reply.Payload, reply.ExpiresIn = payload, duration(int64(left))
			}
			return err
		})
	return reply, err
}

// Revoke implements driver.Vault.
func (e *engine) Revoke(ctx context.Context, digest driver.Digest) (reply driver.VaultReply, err error) {
	err = e.call(ctx, waiting, "revoke", []any{string(digest)}, &reply.State)
	return reply, err
}

// Prune implements driver.Vault. INVARIANT I11: it reads at most limit rows, in the order in which
// they are due.
func (e *engine) Prune(ctx context.Context, limit int) (deleted int, more bool, err error) {
	err = e.call(ctx, waiting, "prune", []any{int32(limit)}, &deleted, &more)
	return deleted, more, err
}

// SelfPruning implements driver.Vault.
func (e *engine) SelfPruning() bool { return false }
