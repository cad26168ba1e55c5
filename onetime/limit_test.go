package onetime_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/onetime"
)

// TestFailuresAreLimited checks that errors of the secret or its token count as failures. Success
// and errors of the store do not.
func TestFailuresAreLimited(t *testing.T) {
	bothKinds(t, func(t *testing.T, engine *faulty) {
		s := newService(t, engine, &onetime.Options{Failures: onetime.FailureLimit{Burst: 5, Every: time.Minute}})
		caller := &onetime.RedeemOptions{Caller: "192.0.2.1"}
		var redeemed string
		for range 20 {
			redeemed = mustIssue(t, s, "payload", time.Hour)
			if _, err := s.RedeemWith(t.Context(), redeemed, caller); err != nil {
				t.Fatalf("a good secret: %v", err)
			}
		}
		for range 10 {
			engine.set(lose("redeem", always, driver.ErrPermission), nil)
			_, err := s.RedeemWith(t.Context(), mustIssue(t, s, "payload", time.Hour), caller)
			wantErr(t, err, holdfast.ErrPermission)
			engine.heal()
		}
		revoked, expired := mustIssue(t, s, "", time.Hour), mustIssue(t, s, "", 10*time.Millisecond)
		if err := s.Revoke(t.Context(), revoked); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		unknown := mustIssue(t, newService(t, newFaulty(), nil), "", time.Hour)
		good := mustIssue(t, s, "payload", time.Hour)
		for _, c := range []struct {
			secret string
			want   error
		}{
			{"hf1t_", onetime.ErrMalformed}, {unknown, onetime.ErrUnknown}, {expired, onetime.ErrExpired},
			{revoked, onetime.ErrRevoked}, {redeemed, onetime.ErrRedeemed}, {good, onetime.ErrTooManyAttempts},
		} {
			_, err := s.RedeemWith(t.Context(), c.secret, caller)
			wantErr(t, err, c.want)
		}
		sent := engine.total()
		_, err := s.RedeemWith(t.Context(), good, caller)
		var tooMany *onetime.TooManyAttemptsError
		if !errors.As(err, &tooMany) || tooMany.RetryAfter != time.Minute || engine.total() != sent {
			t.Errorf("error = %v, %d requests", err, engine.total()-sent)
		}
		if want := "onetime: redeem: too many failed attempts: the next may be made in 1m0s"; err.Error() != want {
			t.Errorf("error = %q, want %q", err, want)
		}
		if _, err := s.RedeemWith(t.Context(), mustIssue(t, s, "", time.Hour), &onetime.RedeemOptions{Caller: "192.0.2.2"}); err != nil {
			t.Errorf("another caller: %v", err)
		}
		time.Sleep(tooMany.RetryAfter)
		if got, err := s.RedeemWith(t.Context(), good, caller); err != nil || string(got) != "payload" {
			t.Errorf("after RetryAfter = %q, %v", got, err)
		}
	})
}
