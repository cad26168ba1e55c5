package sqlitelock

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Deposit implements driver.Vault. The token outlives a power cut, because its
// secret may be on its way to somebody.
func (e *Engine) Deposit(ctx context.Context, req driver.DepositRequest) error {
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
		payload := req.Payload
		if payload == nil {
			payload = []byte{} // not NULL
		}
		return run(t.sql.deposit, t.on(req.Digest, req.By, payload, ceilMicros(req.TTL), ceilMicros(req.Memory))...)
	})
}

// Redeem implements driver.Vault. That it was redeemed outlives a power cut,
// so that the payload is not handed out again after it.
func (e *Engine) Redeem(ctx context.Context, req driver.RedeemRequest) (reply driver.VaultReply, err error) {
	err = e.transactDurably(ctx, func(t *tx) error {
		k, err := t.token(req.Digest)
		if err != nil {
			return err
		}
		reply.State = k.state
		switch {
		case k.state == driver.Fresh:
			if err := run(t.sql.redeem, t.on(req.Digest, req.By, ceilMicros(driver.RedeemGrace))...); err != nil {
				return err
			}
		case k.state == driver.Redeemed && k.taker == req.By && k.live: // INVARIANT I6
		default:
			return nil
		}
		reply = driver.VaultReply{State: driver.Redeemed, Granted: true, Payload: k.payload}
		return nil
	})
	if err != nil {
		return driver.VaultReply{}, err
	}
	return reply, nil
}

// Peek implements driver.Vault. It does not wait for writers.
func (e *Engine) Peek(ctx context.Context, digest driver.Digest) (reply driver.VaultReply, err error) {
	err = e.query(ctx, func() error {
		now, err := e.clock.now()
		if err != nil {
			return err
		}
		k, err := lookUp(e.read.vault, onToken(digest, e.clock.bootID, now))
		reply = driver.VaultReply{State: k.state}
		if k.state == driver.Fresh {
			reply.Payload, reply.ExpiresIn = k.payload, k.left
		}
		return err
	})
	if err != nil {
		return driver.VaultReply{}, err
	}
	return reply, nil
}

// Revoke implements driver.Vault. It outlives a power cut.
func (e *Engine) Revoke(ctx context.Context, digest driver.Digest) (reply driver.VaultReply, err error) {
	err = e.transactDurably(ctx, func(t *tx) error {
		k, err := t.token(digest)
		if err != nil {
			return err
		}
		reply.State = k.state
		if k.state == driver.Fresh {
			return run(t.sql.revoke, digest)
		}
		return nil
	})
	if err != nil {
		return driver.VaultReply{}, err
	}
	return reply, nil
}

// Prune implements driver.Vault. INVARIANT I11: it looks at no more than limit
// rows, found by index, in the order in which they are due.
func (e *Engine) Prune(ctx context.Context, limit int) (deleted int, more bool, err error) {
	err = e.transact(ctx, func(t *tx) error {
		due := []any{t.bootID, t.now.bootMicros(), int64(t.now.micros), limit}
		result, err := t.sql.prune.ExecContext(context.Background(), due...)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return err
		}
		deleted = int(n)
		if err := run(t.sql.empty, due...); err != nil {
			return err
		}
		due[3] = 1
		var any int
		more, err = one(t.sql.more, due, &any)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return deleted, more, nil
}

// SelfPruning implements driver.Vault.
func (e *Engine) SelfPruning() bool { return false }

// A token is what the store knows of a one-time token.
type token struct {
	by, taker driver.LeaseID
	state     driver.VaultState
	live      bool          // there is a payload, and until left is over
	left      time.Duration // may be below 0 if not live
	payload   []byte
}

// token looks a token up, inside the transaction that changes it.
func (t *tx) token(digest driver.Digest) (token, error) { return lookUp(t.sql.vault, t.on(digest)) }

// on returns the arguments of statements on one token.
func (t *tx) on(digest driver.Digest, more ...any) []any {
	return append(onToken(digest, t.bootID, t.now), more...)
}

func onToken(digest driver.Digest, bootID string, now instant) []any {
	return []any{digest, bootID, now.bootMicros(), int64(now.micros)}
}

// lookUp reads a token with stmt. It is Unknown if there is none.
func lookUp(stmt *sql.Stmt, args []any) (k token, err error) {
	var left int64 // microseconds
	_, err = one(stmt, args, &k.by, &k.state, &k.taker, &left, &k.live, &k.payload)
	k.left = time.Duration(left) * time.Microsecond
	return k, err
}

// bootMicros returns the instant of the boot-time clock in microseconds.
func (i instant) bootMicros() int64 { return i.boot / int64(time.Microsecond) }
