package onetime

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// The states of a token that refuse a redeem, or why the state is unknown, for errors.Is
// (INVARIANT I10). Each error of this package wraps one of them, or one of package
// holdfast, or only the error of the caller's own context.
var (
	// ErrMalformed: it is not a secret of this package, or was mistyped or cut
	// off. Nothing was sent to the store.
	ErrMalformed = errors.New("this is not a one-time token, or it was mistyped or cut off")

	// ErrUnknown: the token was never issued in this collection, or its TTL
	// ended longer ago than Options.Memory.
	ErrUnknown = errors.New("token is unknown")

	// ErrExpired: the token's TTL ended before the token was redeemed.
	ErrExpired = errors.New("token has expired")

	// ErrRevoked: the token was revoked before it was redeemed.
	ErrRevoked = errors.New("token was revoked")

	// ErrRedeemed: the token has been redeemed. If that was an earlier
	// request of ours whose reply was lost, driver.RedeemGrace has ended too.
	ErrRedeemed = errors.New("token was redeemed already")

	// ErrTooManyAttempts: RedeemOptions.Caller has failed too often. The
	// error is a *TooManyAttemptsError. Nothing was sent to the store.
	ErrTooManyAttempts = errors.New("too many failed attempts")
)

// A TooManyAttemptsError says when to retry. It is ErrTooManyAttempts.
type TooManyAttemptsError struct {
	RetryAfter time.Duration // until the next attempt may be made
}

func (e *TooManyAttemptsError) Error() string {
	return fmt.Sprintf("%v: the next may be made in %s", ErrTooManyAttempts, max(e.RetryAfter.Round(time.Millisecond), time.Millisecond))
}

// Is makes errors.Is(err, ErrTooManyAttempts) true.
func (e *TooManyAttemptsError) Is(target error) bool { return target == ErrTooManyAttempts }

// stateError returns the error for a token that can not be redeemed.
func stateError(s driver.VaultState) error {
	switch s {
	case driver.Unknown:
		return ErrUnknown
	case driver.Expired:
		return ErrExpired
	case driver.Revoked:
		return ErrRevoked
	case driver.Redeemed:
		return ErrRedeemed
	}
	return fmt.Errorf("%w: the engine answered %q, which makes no sense here", holdfast.ErrOutcomeUnknown, s)
}

// isRefusal reports whether err is about the token itself, not the store.
func isRefusal(err error) bool {
	about := []error{ErrMalformed, ErrUnknown, ErrExpired, ErrRevoked, ErrRedeemed}
	return slices.ContainsFunc(about, func(e error) bool { return errors.Is(err, e) })
}

// opError adds the verb and, if it is known, the token:
// `onetime: redeem 5f3a09c2d1e4: token has expired`. The digits begin the token's ID,
// which reveals nothing of its secret.
func opError(op string, digest driver.Digest, err error) error {
	if digest == "" {
		return fmt.Errorf("onetime: %s: %w", op, err)
	}
	return fmt.Errorf("onetime: %s %s: %w", op, digest[:12], err)
}
