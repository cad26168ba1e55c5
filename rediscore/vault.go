package rediscore

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// Deposit implements driver.Vault.
func (e *engine) Deposit(ctx context.Context, req driver.DepositRequest) error {
	_, err := e.evalToken(ctx, e.scripts.Deposit, parseDeposit, req.Digest,
		string(req.By), string(req.Payload), form.MS(req.TTL), form.MS(req.TTL+req.Memory))
	return err
}

func parseDeposit(reply any) (none driver.VaultReply, err error) {
	switch reply {
	case int64(1):
		return none, nil
	case int64(0):
		return none, fmt.Errorf("%w: there is another one-time token with this secret: draw a new one", driver.ErrKindMismatch)
	case int64(-1):
		return none, errNoToken()
	}
	return none, form.Malformed("deposit", reply)
}

// Redeem implements driver.Vault.
func (e *engine) Redeem(ctx context.Context, req driver.RedeemRequest) (driver.VaultReply, error) {
	return e.evalToken(ctx, e.scripts.Redeem, parseRedeem, req.Proof.Digest(), string(req.By), form.MS(driver.RedeemGrace))
}

func parseRedeem(reply any) (driver.VaultReply, error) {
	var state int64
	var payload string
	if form.Read(reply, &state, &payload) && state == int64(driver.Redeemed) {
		return driver.VaultReply{State: driver.Redeemed, Granted: true, Payload: []byte(payload)}, nil
	}
	return parseSpent("redeem", reply)
}

// Peek implements driver.Vault.
func (e *engine) Peek(ctx context.Context, proof driver.Proof) (driver.VaultReply, error) {
	return e.evalToken(ctx, e.scripts.Peek, parsePeek, proof.Digest())
}

func parsePeek(reply any) (driver.VaultReply, error) {
	var state, left int64
	var payload string
	if form.Read(reply, &state, &left, &payload) && state == int64(driver.Fresh) {
		return driver.VaultReply{State: driver.Fresh, Payload: []byte(payload), ExpiresIn: form.ExpiresIn(left)}, nil
	}
	return parseSpent("peek", reply)
}

// Revoke implements driver.Vault.
func (e *engine) Revoke(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	return e.evalToken(ctx, e.scripts.Revoke, parseRevoke, digest)
}

// evalToken runs a script about a one-time token.
func (e *engine) evalToken(ctx context.Context, script *lua.Script, parse func(reply any) (driver.VaultReply, error),
	digest driver.Digest, args ...string,
) (driver.VaultReply, error) {
	if err := e.store.Enter(ctx, ""); err != nil {
		return driver.VaultReply{}, err
	}
	reply, err := e.store.Eval(ctx, script, e.store.keys.Token(script.Keys, digest), args)
	if err != nil {
		return driver.VaultReply{}, err
	}
	return parse(reply)
}

// Prune implements driver.Vault. It does nothing, because all keys of a token expire.
func (e *engine) Prune(ctx context.Context, _ int) (deleted int, more bool, err error) {
	return 0, false, e.store.Enter(ctx, "")
}

// SelfPruning implements driver.Vault.
func (e *engine) SelfPruning() bool { return true }

func parseRevoke(reply any) (driver.VaultReply, error) { return parseState("revoke", reply) }

// parseSpent reads the reply {state}, which is for a token that is not fresh.
func parseSpent(op string, reply any) (driver.VaultReply, error) {
	var state any
	if !form.Read(reply, &state) || state == int64(driver.Fresh) {
		return driver.VaultReply{}, errHidden(op)
	}
	return parseState(op, state)
}

// parseState reads a state that is not in a list.
func parseState(op string, reply any) (driver.VaultReply, error) {
	state, ok := reply.(int64)
	switch {
	case !ok || state < -1 || state > int64(driver.Expired):
		return driver.VaultReply{}, errHidden(op)
	case state == -1:
		return driver.VaultReply{}, errNoToken()
	}
	return driver.VaultReply{State: driver.VaultState(state)}, nil
}

// errNoToken returns the error for a token's key that holds something else.
func errNoToken() error {
	return fmt.Errorf("%w: the key of the one-time token holds something else: another program wrote to it; delete it",
		driver.ErrKindMismatch)
}

// errHidden is form.Malformed for a reply that may contain a payload.
func errHidden(op string) error {
	return fmt.Errorf("the server's reply to %s makes no sense", op)
}
