package driver

import "context"

// What Forward hands on beside locks: records and one-time tokens.

func (f Forward) recorder() (Recorder, error) {
	return behind[Recorder](f, f.Capabilities().Records, "do-once work")
}

// Complete implements Recorder.
func (f Forward) Complete(ctx context.Context, req CompleteRequest) error {
	return passOrder(ctx, f.recorder, Recorder.Complete, req)
}

// Recall implements Recorder.
func (f Forward) Recall(ctx context.Context, name string) (r Record, found bool, err error) {
	inner, err := f.recorder()
	if err != nil {
		return Record{}, false, err
	}
	return inner.Recall(ctx, name)
}

// Forget implements Recorder.
func (f Forward) Forget(ctx context.Context, name string) (found bool, err error) {
	return pass(ctx, f.recorder, Recorder.Forget, name)
}

func (f Forward) vault() (Vault, error) {
	return behind[Vault](f, f.Capabilities().OneTime, "keeping one-time tokens")
}

// Deposit implements Vault.
func (f Forward) Deposit(ctx context.Context, req DepositRequest) error {
	return passOrder(ctx, f.vault, Vault.Deposit, req)
}

// Redeem implements Vault.
func (f Forward) Redeem(ctx context.Context, req RedeemRequest) (VaultReply, error) {
	return pass(ctx, f.vault, Vault.Redeem, req)
}

// Peek implements Vault.
func (f Forward) Peek(ctx context.Context, digest Digest) (VaultReply, error) {
	return pass(ctx, f.vault, Vault.Peek, digest)
}

// Revoke implements Vault.
func (f Forward) Revoke(ctx context.Context, digest Digest) (VaultReply, error) {
	return pass(ctx, f.vault, Vault.Revoke, digest)
}

// Prune implements Vault.
func (f Forward) Prune(ctx context.Context, limit int) (deleted int, more bool, err error) {
	v, err := f.vault()
	if err != nil {
		return 0, false, err
	}
	return v.Prune(ctx, limit)
}

// SelfPruning implements Vault.
func (f Forward) SelfPruning() bool {
	v, err := f.vault()
	return err == nil && v.SelfPruning()
}
