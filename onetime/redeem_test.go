package onetime_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/onetime"
)

// bothKinds runs test on a store that needs pruning, and on a store that prunes itself.
func bothKinds(t *testing.T, test func(t *testing.T, engine *faulty)) {
	for _, selfPruning := range []bool{false, true} {
		t.Run(fmt.Sprintf("selfPruning=%t", selfPruning), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				engine.selfPruning = selfPruning
				test(t, engine)
			})
		})
	}
}

func TestOneOfManyGetsThePayload(t *testing.T) {
	bothKinds(t, func(t *testing.T, engine *faulty) {
		services := []*onetime.Service{newService(t, engine, nil), newService(t, engine, nil)}
		secret := mustIssue(t, services[0], "payload", time.Hour)
		var wg sync.WaitGroup
		var mu sync.Mutex
		payloads, redeemed := 0, 0
		for i := range 200 {
			wg.Go(func() {
				payload, err := services[i%2].Redeem(t.Context(), secret)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && string(payload) == "payload":
					payloads++
				case errors.Is(err, onetime.ErrRedeemed) && payload == nil:
					redeemed++
				default:
					t.Errorf("Redeem = %q, %v", payload, err)
				}
			})
		}
		wg.Wait()
		if payloads != 1 || redeemed != 199 {
			t.Errorf("%d got the payload and %d ErrRedeemed, want 1 and 199", payloads, redeemed)
		}
	})
}

func TestErrorsAreDistinct(t *testing.T) {
	bothKinds(t, func(t *testing.T, engine *faulty) {
		s := newService(t, engine, &onetime.Options{Memory: time.Hour})
		expired := mustIssue(t, s, "a", time.Minute)
		long := mustIssue(t, s, "f", 2*time.Hour)
		redeemed := mustIssue(t, s, "b", time.Minute)
		revoked := mustIssue(t, s, "c", time.Minute)
		unknown := mustIssue(t, newService(t, newFaulty(), nil), "d", time.Minute)
		wantRedeem(t, s, redeemed, "b")
		if err := s.Revoke(t.Context(), revoked); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute - time.Millisecond)
		wantRedeem(t, s, mustIssue(t, s, "e", time.Minute), "e")
		if p, err := s.Peek(t.Context(), expired); err != nil || string(p.Payload) != "a" || p.ExpiresIn != time.Millisecond {
			t.Errorf("Peek a millisecond before the end = %+v, %v", p, err)
		}
		time.Sleep(time.Millisecond)

		check := func(cases map[string]error) {
			t.Helper()
			for secret, want := range cases {
				_, err := s.Redeem(t.Context(), secret)
				wantErr(t, err, want)
				_, err = s.Peek(t.Context(), secret)
				wantErr(t, err, want)
				err = s.Revoke(t.Context(), secret)
				if want != onetime.ErrRevoked {
					wantErr(t, err, want)
				} else if err != nil {
					t.Errorf("Revoke of a revoked token: %v", err)
				}
			}
		}
		check(map[string]error{
			"hf1t_": onetime.ErrMalformed, unknown: onetime.ErrUnknown, expired: onetime.ErrExpired,
			redeemed: onetime.ErrRedeemed, revoked: onetime.ErrRevoked,
		})
		time.Sleep(time.Hour - time.Millisecond)
		check(map[string]error{expired: onetime.ErrExpired, redeemed: onetime.ErrRedeemed, revoked: onetime.ErrRevoked})
		time.Sleep(time.Millisecond)
		check(map[string]error{expired: onetime.ErrUnknown, redeemed: onetime.ErrUnknown, revoked: onetime.ErrUnknown})
		wantRedeem(t, s, long, "f")
	})
}

func TestErrorText(t *testing.T) {
	s := newService(t, newFaulty(), nil)
	secret := mustIssue(t, s, "a", time.Minute)
	id, err := s.ID(secret)
	if err != nil {
		t.Fatal(err)
	}
	wantRedeem(t, s, secret, "a")
	_, err = s.Redeem(t.Context(), secret)
	if want := "onetime: redeem " + id[:12] + ": token was redeemed already"; err == nil || err.Error() != want {
		t.Errorf("error = %q, want %q", err, want)
	}
}

// TestCollectionsAreSeparate checks that a secret of one collection is unknown in another.
func TestCollectionsAreSeparate(t *testing.T) {
	engine := newFaulty()
	invitations := newService(t, engine, &onetime.Options{Name: "invitations"})
	resets := newService(t, engine, &onetime.Options{Name: "password resets"})
	secret := mustIssue(t, invitations, "a", time.Hour)
	_, err := resets.Redeem(t.Context(), secret)
	wantErr(t, err, onetime.ErrUnknown)
	wantErr(t, resets.Revoke(t.Context(), secret), onetime.ErrUnknown)
	wantRedeem(t, invitations, secret, "a")
}

func TestPayloadsComeBackWhole(t *testing.T) {
	bothKinds(t, func(t *testing.T, engine *faulty) {
		s := newService(t, engine, nil)
		for name, payload := range map[string][]byte{
			"nil": nil, "empty": {}, "binary": {0, 1, 255, 0}, "largest": []byte(strings.Repeat("x", onetime.MaxPayload)),
		} {
			given := append([]byte(nil), payload...)
			secret, err := s.Issue(t.Context(), given, time.Hour)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			clear(given) // the service must have copied it
			if p, err := s.Peek(t.Context(), secret); err != nil || string(p.Payload) != string(payload) || p.ExpiresIn != time.Hour {
				t.Errorf("%s: Peek = %d bytes, %s, %v", name, len(p.Payload), p.ExpiresIn, err)
			}
			if got, err := s.Redeem(t.Context(), secret); err != nil || string(got) != string(payload) {
				t.Errorf("%s: Redeem = %d bytes, %v", name, len(got), err)
			}
			_, err = s.Redeem(t.Context(), secret)
			wantErr(t, err, onetime.ErrRedeemed)
		}
	})
}

// TestRedeemRacesRevoke checks that a token is either redeemed once or revoked, and that all
// callers get consistent results.
func TestRedeemRacesRevoke(t *testing.T) {
	engine := newFaulty()
	s := newService(t, engine, nil)
	wins := map[string]int{}
	for range 200 {
		secret := mustIssue(t, s, "payload", time.Hour)
		var wg sync.WaitGroup
		errs, revokeErrs := make([]error, 3), make([]error, 2)
		for i := range errs {
			wg.Go(func() { _, errs[i] = s.Redeem(t.Context(), secret) })
		}
		for i := range revokeErrs {
			wg.Go(func() { revokeErrs[i] = s.Revoke(t.Context(), secret) })
		}
		wg.Wait()
		payloads := 0
		for _, err := range errs {
			if err == nil {
				payloads++
			}
		}
		want, wantRevoke := onetime.ErrRedeemed, onetime.ErrRedeemed
		if payloads == 0 {
			want, wantRevoke = onetime.ErrRevoked, nil
		}
		for _, err := range errs {
			if err != nil && !errors.Is(err, want) {
				t.Fatalf("%d payloads, but one was told %v", payloads, err)
			}
		}
		for _, err := range revokeErrs {
			if !errors.Is(err, wantRevoke) {
				t.Fatalf("%d payloads, but Revoke = %v", payloads, err)
			}
		}
		if payloads > 1 {
			t.Fatalf("%d payloads", payloads)
		}
		wins[fmt.Sprint(payloads)]++
	}
	t.Logf("redeemed %d, revoked %d of 200", wins["1"], wins["0"])
}

// TestRedeemRacesExpiry checks redeems just before and after the end of the TTL.
func TestRedeemRacesExpiry(t *testing.T) {
	bothKinds(t, func(t *testing.T, engine *faulty) {
		s := newService(t, engine, nil)
		for i := range 50 {
			secret := mustIssue(t, s, "payload", time.Second)
			var wg sync.WaitGroup
			var mu sync.Mutex
			payloads := 0
			for j := range 4 {
				wg.Go(func() {
					time.Sleep(time.Second - 25 + time.Duration(i+j)) // nanoseconds
					_, err := s.Redeem(t.Context(), secret)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						payloads++
					} else if want := onetime.ErrRedeemed; i+j >= 25 && i >= 25 {
						wantErr(t, err, onetime.ErrExpired)
					} else {
						wantErr(t, err, want)
					}
				})
			}
			wg.Wait()
			if want := map[bool]int{true: 1, false: 0}[i < 25]; payloads != want {
				t.Errorf("first redeem %d ns before the end: %d payloads, want %d", 25-i, payloads, want)
			}
		}
	})
}

func TestRevokeByID(t *testing.T) {
	s := newService(t, newFaulty(), nil)
	secret := mustIssue(t, s, "a", time.Hour)
	id, err := s.ID(secret)
	if err != nil || len(id) != 64 {
		t.Fatalf("ID = %q, %v", id, err)
	}
	if err := s.RevokeID(t.Context(), id); err != nil {
		t.Error(err)
	}
	_, err = s.Redeem(t.Context(), secret)
	wantErr(t, err, onetime.ErrRevoked)
	_, err = s.ID(secret[1:])
	wantErr(t, err, onetime.ErrMalformed)
	for _, bad := range []string{"", id[1:], strings.ToUpper(id), id + "0", strings.Repeat("g", 64)} {
		wantErr(t, s.RevokeID(t.Context(), bad), onetime.ErrMalformed)
	}
}

// TestSecretsAreNowhere checks that neither the store nor an error or event contains a part of a
// secret.
func TestSecretsAreNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		var mu sync.Mutex
		var said []string
		say := func(e any, err error) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, fmt.Sprintf("%+v %v", e, err))
		}
		client := newClient(t, engine, &holdfast.Options{Observer: func(e holdfast.Event) { say(e, e.Err) }})
		s, err := onetime.New(client, &onetime.Options{Observer: func(e observe.Event) { say(e, e.Err) }})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		secrets := []string{
			mustIssue(t, s, "payload that is kept", time.Hour),
			mustIssue(t, s, "payload that is redeemed", time.Hour),
			mustIssue(t, s, "payload that is revoked", time.Hour),
			mustIssue(t, s, "payload that is unreachable", time.Hour),
		}
		redeem := func(secret string) {
			_, err := s.RedeemWith(t.Context(), secret, &onetime.RedeemOptions{Caller: "192.0.2.1"})
			say("redeem", err)
		}
		redeem(secrets[1])
		redeem(secrets[1])
		say("revoke", s.Revoke(t.Context(), secrets[2]))
		redeem(secrets[2])
		for i := range 20 {
			redeem(secrets[0][:i+30])
			redeem(secrets[0] + "0")
		}
		for _, op := range []string{"redeem", "peek", "acquire"} {
			engine.set(lose(op, always, errLink), nil)
			_, err := s.Redeem(t.Context(), secrets[3])
			say(op, err)
		}
		engine.heal()
		synctest.Wait() // for the clean-up of the lock that was not granted: the walk does not lock the store

		kept := false
		stored := texts(engine.Engine)
		for _, text := range stored {
			kept = kept || text == "payload that is kept"
		}
		if !kept {
			t.Error("the walk through the store does not find what is there")
		}
		for _, secret := range secrets {
			random := secret[5:48]
			for _, part := range []string{secret[5:30], random[20:], random[:8]} {
				if i := strings.Index(strings.Join(stored, "\n"), part); i >= 0 {
					t.Error("the store has a part of a secret")
				}
				if i := strings.Index(strings.Join(said, "\n"), part); i >= 0 {
					t.Errorf("an error or event has a part of a secret:\n%s", strings.Join(said, "\n"))
				}
			}
		}
		if len(said) < 60 {
			t.Errorf("only %d errors and events were looked at", len(said))
		}
	})
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []observe.Event
		s := newService(t, newFaulty(), &onetime.Options{Observer: func(e observe.Event) { events = append(events, e) }})
		first, second := mustIssue(t, s, "a", time.Hour), mustIssue(t, s, "b", time.Hour)
		wantRedeem(t, s, first, "a")
		s.Redeem(t.Context(), first)
		s.Redeem(t.Context(), "hf1t_")
		s.Revoke(t.Context(), second)
		s.Prune(t.Context())
		synctest.Wait() // until the events have arrived
		id1, _ := s.ID(first)
		id2, _ := s.ID(second)
		want := []struct {
			kind observe.Kind
			id   string
			err  error
		}{
			{observe.TokenIssued, id1, nil}, {observe.TokenIssued, id2, nil}, {observe.TokenRedeemed, id1, nil},
			{observe.TokenRefused, id1, onetime.ErrRedeemed}, {observe.TokenRefused, "", onetime.ErrMalformed},
			{observe.TokenRevoked, id2, nil}, {observe.TokensPruned, "", nil},
		}
		if len(events) != len(want) {
			t.Fatalf("%d events, want %d: %+v", len(events), len(want), events)
		}
		for i, w := range want {
			if e := events[i]; e.Kind != w.kind || e.TokenID != w.id || e.Name != "onetime" || !errors.Is(e.Err, w.err) {
				t.Errorf("event %d = %v %+v, want %v of %s with %v", i, e.Kind, e, w.kind, w.id, w.err)
			}
		}
	})
}
