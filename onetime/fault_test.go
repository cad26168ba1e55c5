package onetime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/onetime"
)

// hang returns a hook that lets the first n calls of op hang.
func hang(op string, n int) func(context.Context, string, int) error {
	return func(ctx context.Context, o string, call int) error {
		if o != op || call > n {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// TestLostRequestsAndReplies checks that a call has the result of one request, however its requests
// or replies are lost.
func TestLostRequestsAndReplies(t *testing.T) {
	faults := map[string]func(f *faulty, op string){
		"request lost":      func(f *faulty, op string) { f.set(lose(op, 1, errLink), nil) },
		"reply lost":        func(f *faulty, op string) { f.set(nil, lose(op, 1, errLink)) },
		"replies lost":      func(f *faulty, op string) { f.set(nil, lose(op, 3, errLink)) },
		"request hangs":     func(f *faulty, op string) { f.set(hang(op, 1), nil) },
		"reply hangs":       func(f *faulty, op string) { f.set(nil, hang(op, 1)) },
		"replies hang":      func(f *faulty, op string) { f.set(nil, hang(op, 2)) },
		"store unavailable": func(f *faulty, op string) { f.set(lose(op, 3, driver.ErrUnavailable), nil) },
		"both":              func(f *faulty, op string) { f.set(lose(op, 2, driver.ErrUnavailable), lose(op, 1, errLink)) },
	}
	for name, fail := range faults {
		t.Run(name, func(t *testing.T) {
			bothKinds(t, func(t *testing.T, engine *faulty) {
				s := newService(t, engine, nil)

				fail(engine, "deposit")
				secret := mustIssue(t, s, "payload", time.Hour)
				if n := engine.count("deposit"); n < 2 {
					t.Errorf("%d deposits: nothing was lost", n)
				}
				if n := engine.left(); n != 1 {
					t.Errorf("%d tokens in the store, want 1", n)
				}
				fail(engine, "peek")
				if p, err := s.Peek(t.Context(), secret); err != nil || string(p.Payload) != "payload" {
					t.Errorf("Peek = %q, %v", p.Payload, err)
				}

				fail(engine, "redeem")
				wantRedeem(t, s, secret, "payload")
				if n := engine.count("redeem"); n < 2 {
					t.Errorf("%d redeems: nothing was lost", n)
				}
				_, err := s.Redeem(t.Context(), secret)
				wantErr(t, err, onetime.ErrRedeemed)

				secret = mustIssue(t, s, "payload", time.Hour)
				fail(engine, "revoke")
				if err := s.Revoke(t.Context(), secret); err != nil || engine.count("revoke") < 2 {
					t.Errorf("Revoke = %v after %d requests", err, engine.count("revoke"))
				}
				_, err = s.Redeem(t.Context(), secret)
				wantErr(t, err, onetime.ErrRevoked)
			})
		})
	}
}

// TestRequestIDSurvivesCalls checks that a caller can repeat a redeem with the same request ID
// until RedeemGrace has passed.
func TestRequestIDSurvivesCalls(t *testing.T) {
	bothKinds(t, func(t *testing.T, engine *faulty) {
		s := newService(t, engine, nil)
		other := newService(t, engine, nil) // another process
		secret := mustIssue(t, s, "payload", time.Minute)
		mine := &onetime.RedeemOptions{RequestID: "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"}
		yours := &onetime.RedeemOptions{RequestID: "f81d4fae-7dec-11d0-a765-00a0c91e6bf7"}

		engine.set(nil, lose("redeem", always, errLink))
		start := time.Now()
		_, err := s.RedeemWith(t.Context(), secret, mine)
		wantErr(t, err, holdfast.ErrOutcomeUnknown, errLink)
		if took := time.Since(start); took < 5*time.Second || took > 7*time.Second {
			t.Errorf("gave up after %s, want the request timeout of 5s", took)
		}
		engine.heal()

		for range 2 {
			for _, s := range []*onetime.Service{s, other} {
				if got, err := s.RedeemWith(t.Context(), secret, mine); err != nil || string(got) != "payload" {
					t.Errorf("with the same request ID = %q, %v", got, err)
				}
			}
			for _, opts := range []*onetime.RedeemOptions{yours, nil, {}} {
				_, err = s.RedeemWith(t.Context(), secret, opts)
				wantErr(t, err, onetime.ErrRedeemed)
			}
			time.Sleep(10 * time.Second)
		}
		time.Sleep(time.Until(start.Add(driver.RedeemGrace)))
		_, err = s.RedeemWith(t.Context(), secret, mine)
		wantErr(t, err, onetime.ErrRedeemed)
	})
}

// TestRequestIDAtTheEndOfTheTTL checks that a redeem can be repeated after the TTL, but that a
// token that has expired is not redeemed.
func TestRequestIDAtTheEndOfTheTTL(t *testing.T) {
	bothKinds(t, func(t *testing.T, engine *faulty) {
		s := newService(t, engine, nil)
		redeemed, late := mustIssue(t, s, "payload", time.Second), mustIssue(t, s, "payload", time.Second)
		opts := &onetime.RedeemOptions{RequestID: "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"}
		if _, err := s.RedeemWith(t.Context(), redeemed, opts); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if got, err := s.RedeemWith(t.Context(), redeemed, opts); err != nil || string(got) != "payload" {
			t.Errorf("repeat after the TTL = %q, %v", got, err)
		}
		_, err := s.RedeemWith(t.Context(), late, opts)
		wantErr(t, err, onetime.ErrExpired)
	})
}

// TestDoubtRemains checks that a definite error after a lost reply leaves the outcome unknown.
func TestDoubtRemains(t *testing.T) {
	for _, later := range []error{driver.ErrUnavailable, driver.ErrPermission, driver.ErrClosed} {
		t.Run(later.Error(), func(t *testing.T) {
			bothKinds(t, func(t *testing.T, engine *faulty) {
				s := newService(t, engine, nil)
				secret, revoked := mustIssue(t, s, "payload", time.Hour), mustIssue(t, s, "payload", time.Hour)
				after := func(op string) {
					first := engine.count(op) + 1
					engine.set(func(_ context.Context, o string, n int) error {
						if o == op && n > first {
							return fmt.Errorf("%w: sorry", later)
						}
						return nil
					}, lose(op, 1, errLink))
				}
				after("redeem")
				_, err := s.Redeem(t.Context(), secret)
				wantErr(t, err, holdfast.ErrOutcomeUnknown, errLink)
				after("revoke")
				wantErr(t, s.Revoke(t.Context(), revoked), holdfast.ErrOutcomeUnknown, errLink)
				engine.heal()
				_, err = s.Redeem(t.Context(), secret)
				wantErr(t, err, onetime.ErrRedeemed)
				_, err = s.Redeem(t.Context(), revoked)
				wantErr(t, err, onetime.ErrRevoked)
			})
		})
	}
}

// TestCertainErrors checks that a definite error means that nothing was done, and that only an
// unavailable store gets the request again.
func TestCertainErrors(t *testing.T) {
	bothKinds(t, func(t *testing.T, engine *faulty) {
		s := newService(t, engine, nil)
		secret := mustIssue(t, s, "payload", time.Hour)
		for _, want := range []error{driver.ErrUnavailable, driver.ErrPermission, driver.ErrUnsupported, driver.ErrKindMismatch} {
			calls := map[string]func() error{
				"redeem":  func() error { _, err := s.Redeem(t.Context(), secret); return err },
				"peek":    func() error { _, err := s.Peek(t.Context(), secret); return err },
				"revoke":  func() error { return s.Revoke(t.Context(), secret) },
				"deposit": func() error { _, err := s.Issue(t.Context(), nil, time.Hour); return err },
			}
			if !engine.selfPruning {
				calls["prune"] = func() error { _, err := s.Prune(t.Context()); return err }
			}
			for op, call := range calls {
				before := engine.count(op)
				engine.set(lose(op, always, fmt.Errorf("%w: sorry", want)), nil)
				wantErr(t, call(), want)
				if n := engine.count(op) - before; want != driver.ErrUnavailable && n != 1 {
					t.Errorf("%s was sent %d times after %v", op, n, want)
				} else if want == driver.ErrUnavailable && (n < 5 || n > 20) {
					t.Errorf("%s was sent %d times to an unavailable store in 5s", op, n)
				}
				engine.heal()
			}
		}
		wantRedeem(t, s, secret, "payload")
	})
}

// TestSilentStore checks the errors of calls to a store that never replies. A call without a
// visible effect is unavailable, and the outcome of other calls is unknown. Our time limit is not
// reported as the end of the caller's context.
func TestSilentStore(t *testing.T) {
	bothKinds(t, func(t *testing.T, engine *faulty) {
		s := newService(t, engine, nil)
		secret := mustIssue(t, s, "payload", time.Hour)
		check := func(op string, call func() error, want error) {
			t.Helper()
			engine.set(hang(op, always), nil)
			start := time.Now()
			err := call()
			wantErr(t, err, want)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v looks like the end of the caller's context", op, err)
			}
			if took := time.Since(start); took < 5*time.Second || took > 6*time.Second {
				t.Errorf("%s took %s, want the request timeout of 5s", op, took)
			}
			engine.heal()
		}
		check("deposit", func() error {
			secret, err := s.Issue(t.Context(), nil, time.Hour)
			if secret != "" {
				t.Error("a secret came with the error")
			}
			return err
		}, holdfast.ErrUnavailable)
		check("peek", func() error { _, err := s.Peek(t.Context(), secret); return err }, holdfast.ErrUnavailable)
		check("redeem", func() error { _, err := s.Redeem(t.Context(), secret); return err }, holdfast.ErrOutcomeUnknown)
		check("revoke", func() error { return s.Revoke(t.Context(), secret) }, holdfast.ErrOutcomeUnknown)
		if !engine.selfPruning {
			check("prune", func() error { _, err := s.Prune(t.Context()); return err }, holdfast.ErrUnavailable)
		}
		wantRedeem(t, s, secret, "payload")
	})
}

// TestCallerGivesUp checks that the end of the caller's context ends a call at once, with the right
// error.
func TestCallerGivesUp(t *testing.T) {
	bothKinds(t, func(t *testing.T, engine *faulty) {
		s := newService(t, engine, nil)
		secret := mustIssue(t, s, "payload", time.Hour)
		giveUp := func(op string, call func(ctx context.Context) error) error {
			t.Helper()
			engine.set(hang(op, always), nil)
			defer engine.heal()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			err := call(ctx)
			if took := time.Since(start); took != time.Second {
				t.Errorf("%s ended after %s, want with its context after 1s", op, took)
			}
			return err
		}
		redeem := func(ctx context.Context) error { _, err := s.Redeem(ctx, secret); return err }
		wantErr(t, giveUp("redeem", redeem), holdfast.ErrOutcomeUnknown, context.DeadlineExceeded)
		if !engine.selfPruning {
			wantErr(t, giveUp("peek", redeem), context.DeadlineExceeded)
			wantErr(t, giveUp("acquire", redeem), context.DeadlineExceeded)
		}
		wantErr(t, giveUp("deposit", func(ctx context.Context) error {
			_, err := s.Issue(ctx, nil, time.Hour)
			return err
		}), context.DeadlineExceeded)
		wantRedeem(t, s, secret, "payload")
	})
}

// TestLostRepliesUnderContention checks that each payload reaches exactly one of several callers,
// and that no outcome stays unknown, although replies are lost.
func TestLostRepliesUnderContention(t *testing.T) {
	bothKinds(t, func(t *testing.T, engine *faulty) {
		s := newService(t, engine, &onetime.Options{RequestTimeout: time.Second})
		// Three of five calls in a row lose their replies: one alone, and two together.
		engine.set(nil, func(_ context.Context, op string, n int) error {
			if op == "redeem" && (n%5 == 1 || n%5 == 3 || n%5 == 4) {
				return errLink
			}
			return nil
		})
		for range 30 {
			secret := mustIssue(t, s, "payload", time.Hour)
			var wg sync.WaitGroup
			var mu sync.Mutex
			payloads, unknown := 0, 0
			for range 8 {
				wg.Go(func() {
					_, err := s.Redeem(t.Context(), secret)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						payloads++
					case errors.Is(err, holdfast.ErrOutcomeUnknown):
						unknown++
					default:
						wantErr(t, err, onetime.ErrRedeemed)
					}
				})
			}
			wg.Wait()
			if payloads != 1 || unknown != 0 {
				t.Fatalf("%d payloads, %d unknown outcomes; want 1 and 0", payloads, unknown)
			}
		}
	})
}

// TestLateCopies checks that a late copy of the request to issue a token does not make a redeemed
// token fresh again.
func TestLateCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &recorder{faulty: newFaulty()}
		s := newService(t, engine, &onetime.Options{Memory: onetime.MinMemory})
		given := []byte("payload")
		secret, err := s.Issue(t.Context(), given, 10*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		clear(given) // the service must have copied it for the request under way
		if got := string(engine.deposit.Payload); got != "payload" {
			t.Errorf("the copy under way has the payload %q", got)
		}
		wantRedeem(t, s, secret, "payload")
		time.Sleep(driver.TombstoneTTL - time.Millisecond)
		if err := engine.Engine.Deposit(t.Context(), engine.deposit); err != nil {
			t.Errorf("late copy of the deposit: %v", err)
		}
		_, err = s.Redeem(t.Context(), secret)
		wantErr(t, err, onetime.ErrRedeemed)
	})
}

// A recorder records the last deposit.
type recorder struct {
	*faulty
	deposit driver.DepositRequest
}

func (r *recorder) Deposit(ctx context.Context, req driver.DepositRequest) error {
	r.deposit = req
	return r.faulty.Deposit(ctx, req)
}

// TestEngineThatAnswersNonsense checks that an inconsistent reply of an engine leaves the outcome
// unknown.
func TestEngineThatAnswersNonsense(t *testing.T) {
	s := newService(t, nonsense{newFaulty()}, nil)
	secret := mustIssue(t, s, "payload", time.Hour)
	_, err := s.Redeem(t.Context(), secret)
	wantErr(t, err, holdfast.ErrOutcomeUnknown)
}

type nonsense struct{ *faulty }

func (nonsense) Redeem(context.Context, driver.RedeemRequest) (driver.VaultReply, error) {
	return driver.VaultReply{State: driver.Fresh, Payload: []byte("payload")}, nil
}
