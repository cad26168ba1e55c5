package onetime_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/onetime"
)

// TestBadInputSendsNothing checks that invalid input is refused before a request is sent.
func TestBadInputSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		s := newService(t, engine, &onetime.Options{MaxPayload: 100})
		issue := func(size int, ttl time.Duration) func() error {
			return func() error {
				secret, err := s.Issue(t.Context(), make([]byte, size), ttl)
				if secret != "" {
					t.Error("a secret came with the error")
				}
				return err
			}
		}
		redeem := func(requestID string) func() error {
			return func() error {
				_, err := s.RedeemWith(t.Context(), "hf1t_", &onetime.RedeemOptions{RequestID: requestID})
				return err
			}
		}
		ended, end := context.WithCancel(t.Context())
		end()
		good := mustIssue(t, newService(t, newFaulty(), nil), "", time.Hour)
		cases := []struct {
			name string
			call func() error
			want error
		}{
			{"payload too large", issue(101, time.Hour), holdfast.ErrInvalid},
			{"no ttl", issue(1, 0), holdfast.ErrInvalid},
			{"negative ttl", issue(1, -time.Hour), holdfast.ErrInvalid},
			{"short ttl", issue(1, 10*time.Millisecond-1), holdfast.ErrInvalid},
			{"long ttl", issue(1, onetime.MaxTTL+1), holdfast.ErrInvalid},
			{"short request ID", redeem("123456789012345"), holdfast.ErrInvalid},
			{"long request ID", redeem(strings.Repeat("x", 257)), holdfast.ErrInvalid},
			{"line feed in request ID", redeem("1234567890123456\n"), holdfast.ErrInvalid},
			{"request ID not UTF-8", redeem("1234567890123456\xff"), holdfast.ErrInvalid},
			{"malformed", redeem("1234567890123456"), onetime.ErrMalformed},
			{"peek malformed", func() error { _, err := s.Peek(t.Context(), good+"0"); return err }, onetime.ErrMalformed},
			{"revoke malformed", func() error { return s.Revoke(t.Context(), good[:53]) }, onetime.ErrMalformed},
			{"issue, ctx over", func() error { _, err := s.Issue(ended, nil, time.Hour); return err }, context.Canceled},
			{"redeem, ctx over", func() error { _, err := s.Redeem(ended, good); return err }, context.Canceled},
			{"revoke, ctx over", func() error { return s.Revoke(ended, good) }, context.Canceled},
			{"peek, ctx over", func() error { _, err := s.Peek(ended, good); return err }, context.Canceled},
			{"prune, ctx over", func() error { _, err := s.Prune(ended); return err }, context.Canceled},
		}
		for _, c := range cases {
			if err := c.call(); !errors.Is(err, c.want) {
				t.Errorf("%s: error = %v, want %v", c.name, err, c.want)
			} else {
				wantErr(t, err, c.want)
			}
			if n := engine.total(); n != 0 {
				t.Fatalf("%s: %d requests were sent", c.name, n)
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	client := newClient(t, newFaulty(), nil)
	for name, o := range map[string]onetime.Options{
		"name":         {Name: "a\nb"},
		"long name":    {Name: strings.Repeat("x", 401)},
		"short memory": {Memory: time.Minute - 1},
		"long memory":  {Memory: onetime.MaxTTL + 1},
		"payload":      {MaxPayload: driver.MaxPayload + 1},
		"neg payload":  {MaxPayload: -1},
		"timeout":      {RequestTimeout: 15*time.Second + 1},
		"neg timeout":  {RequestTimeout: -1},
		"prune":        {PruneEvery: time.Second - 1},
		"batch":        {PruneBatch: driver.MaxPrune + 1},
		"neg batch":    {PruneBatch: -1},
		"burst":        {Failures: onetime.FailureLimit{Burst: -1}},
		"every":        {Failures: onetime.FailureLimit{Every: -1}},
		"callers":      {Failures: onetime.FailureLimit{MaxCallers: -1}},
	} {
		s, err := onetime.New(client, &o)
		if s != nil {
			t.Errorf("%s: a service came with the error", name)
		}
		wantErr(t, err, holdfast.ErrInvalid)
	}
	longest := onetime.Options{Name: strings.Repeat("x", 400), Memory: onetime.MaxTTL, RequestTimeout: 15 * time.Second}
	s, err := onetime.New(client, &longest)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	wantRedeem(t, s, mustIssue(t, s, "a", onetime.MaxTTL), "a")

	// An engine must have the features that the service needs.
	without := driver.Forward{Engine: newFaulty(), Without: driver.Capabilities{OneTime: true}}
	_, err = onetime.New(newClient(t, without, nil), nil)
	wantErr(t, err, holdfast.ErrUnsupported)
	_, err = onetime.New(newClient(t, exclusiveOnly{newFaulty()}, nil), nil)
	wantErr(t, err, holdfast.ErrUnsupported)
	forgets := newFaulty()
	forgets.selfPruning = true
	if _, err := onetime.New(newClient(t, exclusiveOnly{forgets}, nil), nil); err != nil {
		t.Errorf("New on a self-pruning store without shared locks: %v", err)
	}
}

// exclusiveOnly has no shared locks.
type exclusiveOnly struct{ *faulty }

func (exclusiveOnly) Capabilities() driver.Capabilities {
	return driver.Capabilities{Queue: true, OneTime: true}
}

func TestClosed(t *testing.T) {
	s := newService(t, newFaulty(), nil)
	secret := mustIssue(t, s, "a", time.Hour)
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	_, err := s.Issue(t.Context(), nil, time.Hour)
	wantErr(t, err, holdfast.ErrClosed)
	_, err = s.Redeem(t.Context(), secret)
	wantErr(t, err, holdfast.ErrClosed)
	_, err = s.Peek(t.Context(), secret)
	wantErr(t, err, holdfast.ErrClosed)
	wantErr(t, s.Revoke(t.Context(), secret), holdfast.ErrClosed)
	wantErr(t, s.Start(), holdfast.ErrClosed)
	_, err = s.Prune(t.Context())
	wantErr(t, err, holdfast.ErrClosed)
}
