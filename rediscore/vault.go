package rediscore

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// Deposit implements driver.Vault.
func (e *Engine) Deposit(ctx context.Context, req driver.DepositRequest) error {
	if err := e.store.Enter(ctx, ""); err != nil {
		return err
	}
	reply, err := e.store.Eval(ctx, e.scripts.Deposit, e.store.keys.Token(e.scripts.Deposit.Keys, req.Digest),
		[]string{string(req.By), string(req.Payload), form.MS(req.TTL), form.MS(req.TTL + req.Memory)})
	switch {
	case err != nil:
		return err
	case reply == int64(1):
		return nil
	case reply == int64(0):
		return fmt.Errorf("%w: there is another one-time token with this secret: draw a new one", driver.ErrKindMismatch)
	case reply == int64(-1):
		return errNoToken()
	}
	return form.Malformed("deposit", reply)
}

// Redeem implements driver.Vault.
func (e *Engine) Redeem(ctx context.Context, req driver.RedeemRequest) (driver.VaultReply, error) {
	if err := e.store.Enter(ctx, ""); err != nil {
		return driver.VaultReply{}, err
	}
	reply, err := e.store.Eval(ctx, e.scripts.Redeem, e.store.keys.Token(e.scripts.Redeem.Keys, req.Digest),
		[]string{string(req.By), form.MS(driver.RedeemGrace)})
	if err != nil {
		return driver.VaultReply{}, err
	}
	return parseRedeem(reply)
}

func parseRedeem(reply any) (driver.VaultReply, error) {
	items, _ := reply.([]any)
	switch len(items) {
	case 1:
		if items[0] != int64(driver.Fresh) {
			return parseState("redeem", items[0])
		}
	case 2:
		payload, ok := items[1].(string)
		if ok && items[0] == int64(driver.Redeemed) {
			return driver.VaultReply{State: driver.Redeemed, Granted: true, Payload: []byte(payload)}, nil
		}
	}
	return driver.VaultReply{}, errHidden("redeem")
}

// Peek implements driver.Vault.
func (e *Engine) Peek(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	if err := e.store.Enter(ctx, ""); err != nil {
		return driver.VaultReply{}, err
	}
	reply, err := e.store.Eval(ctx, e.scripts.Peek, e.store.keys.Token(e.scripts.Peek.Keys, digest), nil)
	if err != nil {
		return driver.VaultReply{}, err
	}
	return parsePeek(reply)
}

func parsePeek(reply any) (driver.VaultReply, error) {
	items, _ := reply.([]any)
	switch len(items) {
	case 1:
		if items[0] != int64(driver.Fresh) {
			return parseState("peek", items[0])
		}
	case 3:
		left, ok1 := items[1].(int64)
		payload, ok2 := items[2].(string)
		if ok1 && ok2 && items[0] == int64(driver.Fresh) {
			return driver.VaultReply{State: driver.Fresh, Payload: []byte(payload), ExpiresIn: form.ExpiresIn(left)}, nil
		}
	}
	return driver.VaultReply{}, errHidden("peek")
}

// Revoke implements driver.Vault.
func (e *Engine) Revoke(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	if err := e.store.Enter(ctx, ""); err != nil {
		return driver.VaultReply{}, err
	}
	reply, err := e.store.Eval(ctx, e.scripts.Revoke, e.store.keys.Token(e.scripts.Revoke.Keys, digest), nil)
	if err != nil {
		return driver.VaultReply{}, err
	}
	return parseState("revoke", reply)
}

// Prune implements driver.Vault. There is nothing to do: every key that a token
// has expires by itself.
func (e *Engine) Prune(ctx context.Context, _ int) (deleted int, more bool, err error) {
	return 0, false, e.store.Enter(ctx, "")
}

// SelfPruning implements driver.Vault.
func (e *Engine) SelfPruning() bool { return true }

// parseState reads a state that comes alone.
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

// errNoToken reports the key of a token that holds something else.
func errNoToken() error {
	return fmt.Errorf("%w: the key of the one-time token holds something else: another program wrote to it; delete it",
		driver.ErrKindMismatch)
}

// errHidden is form.Malformed for a reply that may have a payload in it.
func errHidden(op string) error {
	return fmt.Errorf("the server's reply to %s makes no sense", op)
}
