package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A deposit is a one-time token.
type deposit struct {
	by      lockinfo.LeaseID
	payload []byte
	expiry  time.Time
	forget  time.Time
	state   driver.VaultState // Fresh, Redeemed or Revoked
	taker   lockinfo.LeaseID  // By of its Redeem
	taken   time.Time
}

// enterVault is enter for requests for one-time tokens.
func (e *engine) enterVault(ctx context.Context, method string) (time.Time, error) {
	if e.fault == "vault ignores an ended context" {
		ctx = context.WithoutCancel(ctx)
	}
	now, err := e.enterFor(ctx, e.caps.OneTime, method)
	if errors.Is(err, driver.ErrClosed) && e.fault == "vault serves on after Close" {
		e.mu.Lock()
		return time.Now(), nil
	}
	if err == nil && e.tokenless && e.fault != method+" needs no vault" {
		e.mu.Unlock()
		return time.Time{}, fmt.Errorf("keeping one-time tokens is %w", driver.ErrUnsupported)
	}
	return now, err
}

// under returns the token of a digest, or nil, and its key.
func (e *engine) under(digest driver.Digest) (d *deposit, key string) {
	key = string(digest)
	switch e.fault {
	case "digests are cut":
		key = key[:32]
	case "each engine has tokens of its own":
		key = fmt.Sprintf("%s of %p", key, e)
	}
	return e.deposits[key], key
}

// stateAt returns the state of a token.
func (s *store) stateAt(d *deposit, now time.Time) driver.VaultState {
	if d == nil {
		return driver.Unknown
	}
	forget := d.forget
	switch s.fault {
	case "token is forgotten with its TTL":
		forget = d.expiry
	case "Memory counts from the redeem":
		if d.state == driver.Redeemed {
			forget = d.taken.Add(d.forget.Sub(d.expiry))
		}
	case "revoked token is forgotten with its TTL":
		if d.state == driver.Revoked {
			forget = d.expiry
		}
	case "only Prune forgets":
		forget = now.Add(1)
	}
	final := d.state != driver.Fresh
	switch s.fault {
	case "redeemed token expires":
		final = d.state == driver.Revoked
	case "revoked token expires":
		final = d.state == driver.Redeemed
	case "token never expires":
		final = true
	}
	switch {
	case !now.Before(forget):
		return driver.Unknown
	case !final && !now.Before(d.expiry):
		return driver.Expired
	}
	return d.state
}

func (e *engine) Deposit(ctx context.Context, req driver.DepositRequest) error {
	now, err := e.enterVault(ctx, "Deposit")
	if err != nil {
		return err
	}
	defer e.mu.Unlock()
	d, key := e.under(req.Digest)
	state := e.stateAt(d, now)
	switch {
	case state != driver.Unknown:
		done, err := e.depositAgain(d, req, state, now)
		if done || err != nil {
			return err
		}
	case d != nil && e.fault == "only Prune frees a digest",
		e.fault == "name in use is not a digest" && len(e.purged(key, now).leases) > 0:
		return driver.ErrKindMismatch
	case d != nil && e.fault == "Deposit finds the forgotten token":
		d.expiry, d.forget = now.Add(req.TTL), now.Add(req.TTL+req.Memory)
		return nil
	case e.fault == "Deposit checks and records in two steps":
		e.pause(time.Millisecond)
	}
	d = e.newDeposit(req, now)
	e.deposits[key] = d
	if e.fault == "token shows as a lock" {
		e.grant(e.purged(key, now), driver.AcquireRequest{Name: key, LeaseID: req.By}, now, d.expiry)
	}
	return nil
}

// depositAgain returns the reply to a deposit under a digest that is in use. done is false if the
// deposit must replace the token.
func (e *engine) depositAgain(
	d *deposit, req driver.DepositRequest, state driver.VaultState, now time.Time,
) (done bool, err error) {
	repeat := e.same(d.by, req.By, "Deposit")
	if e.fault == "Deposit is told by its payload" {
		repeat = string(d.payload) == string(req.Payload)
	}
	if !repeat {
		switch e.fault {
		case "Deposit replaces the token of another":
			return false, nil
		case "Deposit replaces a token that is used up":
			if state != driver.Fresh {
				return false, nil
			}
		case "refused Deposit is not an error":
			return true, nil
		case "refused Deposit changes the payload":
			d.payload = e.in(req.Payload)
		case "refused Deposit lengthens the token":
			d.expiry, d.forget = now.Add(req.TTL), now.Add(req.TTL+req.Memory)
		case "refused Deposit takes the token over":
			d.by = req.By
		}
		return true, driver.ErrKindMismatch
	}
	switch e.fault {
	case "second Deposit is refused":
		return true, driver.ErrKindMismatch
	case "second Deposit of a token that is used up is refused":
		if state != driver.Fresh {
			return true, driver.ErrKindMismatch
		}
	case "second Deposit starts the TTL anew":
		d.expiry, d.forget = now.Add(req.TTL), now.Add(req.TTL+req.Memory)
	case "second Deposit makes the token fresh":
		return false, nil
	}
	return true, nil
}

// newDeposit returns the fresh token for a request.
func (s *store) newDeposit(req driver.DepositRequest, now time.Time) *deposit {
	expiry := now.Add(req.TTL)
	switch s.fault {
	case "token ends a tenth early":
		expiry = now.Add(req.TTL - req.TTL/10)
	case "token lasts a unit too long":
		expiry = expiry.Add(time.Second)
	}
	payload := s.in(req.Payload)
	if s.fault == "payload is cut" {
		payload = payload[:min(len(payload), driver.MaxPayload-1)]
	}
	return &deposit{
		by: req.By, payload: payload, expiry: expiry, forget: expiry.Add(req.Memory), state: driver.Fresh,
	}
}

func (e *engine) Redeem(ctx context.Context, req driver.RedeemRequest) (driver.VaultReply, error) {
	now, err := e.enterVault(ctx, "Redeem")
	if err != nil {
		return driver.VaultReply{}, err
	}
	defer e.mu.Unlock()
	d, key := e.under(req.Proof.Digest())
	state := e.stateAt(d, now)
	if d == nil && e.fault == "Redeem of an unknown digest is remembered" {
		e.deposits[key] = &deposit{state: driver.Redeemed, taken: now, forget: now.Add(time.Hour)}
	}
	switch {
	case state == driver.Unknown && e.fault == "unknown digest is an error":
		return driver.VaultReply{}, driver.ErrLost
	case state == driver.Fresh,
		state == driver.Expired && e.fault == "expired token is handed out",
		state == driver.Revoked && e.fault == "revoked token is handed out":
		if e.fault == "vault checks and records in two steps" {
			e.pause(time.Millisecond)
		}
		if e.fault != "Redeem leaves the token fresh" {
			d.state, d.taker, d.taken = driver.Redeemed, req.By, now
		}
	case d != nil && e.repeats(d, req, state, now):
	default:
		return e.notGranted(d, req, state), nil
	}
	reply := driver.VaultReply{State: driver.Redeemed, Granted: true, Payload: e.out(d.payload)}
	switch e.fault {
	case "Redeem says what is left":
		reply.ExpiresIn = d.expiry.Sub(now)
	case "Redeem says Fresh":
		reply.State = driver.Fresh
	case "Redeem deletes the payload":
		d.payload = nil
	}
	return reply, nil
}

// repeats reports whether req is a repeated Redeem that must be granted again.
func (s *store) repeats(d *deposit, req driver.RedeemRequest, state driver.VaultState, now time.Time) bool {
	if s.fault == "repeat of Redeem outlives the token" && state == driver.Unknown && d.state == driver.Redeemed {
		state = driver.Redeemed
	}
	grace := driver.RedeemGrace
	if s.fault == "RedeemGrace is 10 s" {
		grace = 10 * time.Second
	}
	repeat := state == driver.Redeemed && s.same(d.taker, req.By, "Redeem") &&
		(now.Before(d.taken.Add(grace)) || s.fault == "RedeemGrace never ends")
	switch s.fault {
	case "second Redeem is refused":
		return false
	case "second Redeem is refused once the TTL is over":
		return repeat && now.Before(d.expiry)
	case "second Redeem of an empty payload is refused":
		return repeat && len(d.payload) > 0
	case "second Redeem starts RedeemGrace anew":
		if repeat {
			d.taken = now
		}
	}
	return repeat
}

// notGranted returns the reply to a refused Redeem.
func (s *store) notGranted(d *deposit, req driver.RedeemRequest, state driver.VaultState) driver.VaultReply {
	reply := driver.VaultReply{State: state}
	switch {
	case d == nil:
	case s.fault == "refused Redeem takes the token over":
		d.taker = req.By
	case s.fault == "refused Redeem tells the payload":
		reply.Payload = s.out(d.payload)
	}
	return reply
}

func (e *engine) Peek(ctx context.Context, proof driver.Proof) (driver.VaultReply, error) {
	now, err := e.enterVault(ctx, "Peek")
	if err != nil {
		return driver.VaultReply{}, err
	}
	defer e.mu.Unlock()
	d, _ := e.under(proof.Digest())
	reply := driver.VaultReply{State: e.stateAt(d, now)}
	switch {
	case d == nil:
		return reply, nil
	case reply.State == driver.Fresh, e.fault == "Peek tells every payload":
		reply.Payload = e.out(d.payload)
	}
	if reply.State == driver.Fresh || e.fault == "Peek says what is left of every token" {
		reply.ExpiresIn = d.expiry.Sub(now)
	}
	switch e.fault {
	case "Peek redeems":
		if reply.State == driver.Fresh {
			d.state, d.taken = driver.Redeemed, now
		}
	case "Peek lengthens":
		d.expiry = now.Add(8 * time.Second)
	case "Peek hides the payload":
		reply.Payload = nil
	case "Peek says what is left in seconds":
		reply.ExpiresIn /= 1000
	case "Peek is granted":
		reply.Granted = true
	}
	return reply, nil
}

func (e *engine) Revoke(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	now, err := e.enterVault(ctx, "Revoke")
	if err != nil {
		return driver.VaultReply{}, err
	}
	defer e.mu.Unlock()
	d, key := e.under(digest)
	reply := driver.VaultReply{State: e.stateAt(d, now)}
	if d == nil && e.fault == "Revoke of an unknown digest is remembered" {
		e.deposits[key] = &deposit{state: driver.Revoked, forget: now.Add(time.Hour)}
	}
	switch {
	case reply.State == driver.Fresh,
		reply.State == driver.Redeemed && e.fault == "redeemed token is revoked",
		reply.State == driver.Expired && e.fault == "expired token is revoked":
		if e.fault == "vault checks and records in two steps" {
			e.pause(time.Millisecond)
		}
		if e.fault == "Revoke tells the payload" {
			reply.Payload = e.out(d.payload)
		}
		d.state, d.payload = driver.Revoked, nil
		switch e.fault {
		case "Revoke does nothing":
			d.state = driver.Fresh
		case "Revoke deletes the token":
			delete(e.deposits, key)
		case "Revoke says the state after":
			reply.State = driver.Revoked
		}
	case reply.State == driver.Redeemed && e.fault == "Revoke deletes the payload of a redeemed token":
		d.payload = nil
	}
	return reply, nil
}
