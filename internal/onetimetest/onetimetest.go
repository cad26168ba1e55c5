// Package onetimetest has helpers for the tests of one-time tokens on different engines.
package onetimetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/onetime"
)

// New returns a service of one-time tokens on an engine. It closes the service and its client at
// the end of the test.
func New(t testing.TB, e driver.Engine, opts *onetime.Options) *onetime.Service {
	t.Helper()
	client, err := holdfast.New(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := onetime.New(client, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close(context.Background())
		_ = client.Close()
	})
	return s
}

// RedeemByMany redeems one token 200 times at once, with the services in turn. It fails t
// unless one call returns the payload, and the others report that the token was
// redeemed. A call that finds the store unavailable, on a machine that is
// slower than the time limits of requests, is repeated.
func RedeemByMany(t *testing.T, services ...*onetime.Service) {
	t.Helper()
	secret, err := services[0].Issue(t.Context(), []byte("payload"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	const many = 200
	var wg sync.WaitGroup
	var mu sync.Mutex // guards payloads and refused
	payloads, refused := 0, 0
	for i := range many {
		s := services[i%len(services)]
		wg.Go(func() {
			payload, err := s.Redeem(t.Context(), secret)
			for errors.Is(err, holdfast.ErrUnavailable) && t.Context().Err() == nil {
				payload, err = s.Redeem(t.Context(), secret)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && string(payload) == "payload":
				payloads++
			case errors.Is(err, onetime.ErrRedeemed):
				refused++
			default:
				t.Errorf("redeem: %q, %v", payload, err)
			}
		})
	}
	wg.Wait()
	if payloads != 1 || refused != many-1 {
		t.Errorf("%d payloads and %d refusals, want 1 and %d", payloads, refused, many-1)
	}
}
