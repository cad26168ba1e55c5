package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/onetimetest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/onetime"
)

// TestSecretIsNotStored checks that no key and no value contains any part of a secret, whatever
// happens to the token.
func TestSecretIsNotStored(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	s := onetimetest.New(t, e, nil)
	var secrets []string
	for i := range 3 {
		secret, err := s.Issue(t.Context(), []byte("reset the password of ada"), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, secret)
		switch i {
		case 1:
			_, err = s.Redeem(t.Context(), secret)
		case 2:
			err = s.Revoke(t.Context(), secret)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	keys, err := do(t, admin, "KEYS *").AsStrSlice()
	if err != nil || len(keys) != 5 {
		t.Fatalf("keys %q, %v; want two of each token, and one of the revoked", keys, err)
	}
	found := false
	for _, key := range keys {
		all := key + "\n" + text(t, admin, "GET", key)
		found = found || strings.Contains(all, "ada")
		for _, secret := range secrets {
			for _, part := range []string{secret, secret[5:48], secret[5:13], secret[40:48]} {
				if strings.Contains(all, part) {
					t.Errorf("%q contains %q of the secret %q", all, part, secret)
				}
			}
		}
	}
	if !found {
		t.Error("no value contains the payload: the search finds nothing at all")
	}
}

// TestRedeemByMany checks that one of 200 concurrent redeems of a token gets the payload.
func TestRedeemByMany(t *testing.T) {
	server := testsvc.Redis(t)
	var services []*onetime.Service
	for range 4 {
		services = append(services, onetimetest.New(t, open(t, server.URL), nil))
	}
	onetimetest.RedeemByMany(t, services...)
}

// A forgetful is an engine that loses its first reply to each kind of request.
type forgetful struct {
	*Engine
	lost map[string]int
}

var errLink = errors.New("connection reset")

func (f *forgetful) lose(op string) error {
	if f.lost[op]++; f.lost[op] == 1 {
		return fmt.Errorf("%s: %w", op, errLink)
	}
	return nil
}

func (f *forgetful) Deposit(ctx context.Context, req driver.DepositRequest) error {
	return errors.Join(f.Engine.Deposit(ctx, req), f.lose("deposit"))
}

func (f *forgetful) Redeem(ctx context.Context, req driver.RedeemRequest) (driver.VaultReply, error) {
	reply, err := f.Engine.Redeem(ctx, req)
	return reply, errors.Join(err, f.lose("redeem"))
}

func (f *forgetful) Revoke(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	reply, err := f.Engine.Revoke(ctx, digest)
	return reply, errors.Join(err, f.lose("revoke"))
}

// TestVaultLostReplies checks that a repeated request has the first reply. INVARIANT I6.
func TestVaultLostReplies(t *testing.T) {
	server := testsvc.Redis(t)
	f := &forgetful{open(t, server.URL), map[string]int{}}
	s := onetimetest.New(t, f, nil)
	secret, err := s.Issue(t.Context(), []byte("payload"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := s.Redeem(t.Context(), secret)
	if err != nil || string(payload) != "payload" {
		t.Errorf("redeem: %q, %v", payload, err)
	}
	_, err = s.Redeem(t.Context(), secret)
	wantIs(t, "another redeem", err, onetime.ErrRedeemed)
	other, err := s.Issue(t.Context(), []byte("payload"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Revoke(t.Context(), other); err != nil {
		t.Errorf("revoke: %v", err)
	}
	_, err = s.Redeem(t.Context(), other)
	wantIs(t, "redeem of a revoked one", err, onetime.ErrRevoked)
	if f.lost["deposit"] != 3 || f.lost["redeem"] != 4 || f.lost["revoke"] != 2 {
		t.Errorf("requests %v, want one repeat of each", f.lost)
	}
}
