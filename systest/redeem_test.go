package systest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/onetime"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// TestRedeemWithLostReplies lets a hundred callers redeem one token, on networks that lose replies.
// One caller gets the payload, and gets it again by repeating the request.
func TestRedeemWithLostReplies(t *testing.T) {
	const racers, links = 100, 10
	s := newStore(t)
	issuer, err := onetime.New(newClient(t, s.engine, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	services := make([]*onetime.Service, links)
	lost := make([]*atomic.Int64, links)
	for i := range services {
		l := s.link(t)
		lost[i] = loseEveryOther(l)
		if services[i], err = onetime.New(l.client(t, nil), &onetime.Options{RequestTimeout: redeemTimeout}); err != nil {
			t.Fatal(err)
		}
	}
	rounds := soak.Count(1, 20)
	won, repeated := 0, 0
	for round := range rounds {
		payload := fmt.Appendf(nil, "payload %d", round)
		secret, err := issuer.Issue(t.Context(), payload, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		var winners, losers atomic.Int64
		var winner atomic.Int64
		request := func(i int) *onetime.RedeemOptions {
			return &onetime.RedeemOptions{RequestID: fmt.Sprintf("racer %04d of round %04d", i, round)}
		}
		var all sync.WaitGroup
		for i := range racers {
			all.Go(func() {
				got, err := insist(t, services[i%links], secret, request(i))
				switch {
				case err == nil && bytes.Equal(got, payload):
					winners.Add(1)
					winner.Store(int64(i))
				case errors.Is(err, onetime.ErrRedeemed):
					losers.Add(1)
				default:
					t.Errorf("racer %d: %q, %v", i, got, err)
				}
			})
		}
		all.Wait()
		if winners.Load() == 1 && losers.Load() == racers-1 {
			won++
		} else {
			t.Errorf("%d winners and %d losers", winners.Load(), losers.Load())
		}
		got, err := issuer.RedeemWith(t.Context(), secret, request(int(winner.Load())))
		if err == nil && bytes.Equal(got, payload) {
			repeated++
		} else {
			t.Errorf("the winner's repeat: %q, %v", got, err)
		}
	}
	replies := int64(0)
	for _, n := range lost {
		replies += n.Load()
	}
	report.Row(t, "one-time redeem with lost replies and 100 racers", "one winner whose repeat succeeds",
		"%d of %d tokens had one winner, %d repeats succeeded; %d replies were lost", won, rounds, repeated, replies)
	if replies < int64(links) {
		t.Errorf("only %d replies were lost", replies)
	}
}

// redeemTimeout is how long a Service repeats a request by itself.
const redeemTimeout = 5 * time.Second

// insist repeats a redeem while its outcome is unknown, which can happen on a busy machine. But a
// Service may not report that long before its timeout.
func insist(t *testing.T, s *onetime.Service, secret string, request *onetime.RedeemOptions) (payload []byte, err error) {
	for range 20 {
		began := time.Now()
		payload, err = s.RedeemWith(t.Context(), secret, request)
		if !errors.Is(err, holdfast.ErrOutcomeUnknown) {
			break
		}
		if took := time.Since(began); took < redeemTimeout/2 {
			t.Errorf("%v, after %s", err, took)
		}
	}
	return payload, err
}

// loseEveryOther loses every second reply to scripts that are not of lock operations, and breaks
// the connection. It counts the lost replies.
func loseEveryOther(l *link) *atomic.Int64 {
	var seen, lost atomic.Int64
	l.on(script, func(faultproxy.Request) faultproxy.Action {
		if seen.Add(1)%2 == 0 {
			return faultproxy.Action{}
		}
		lost.Add(1)
		return faultproxy.Action{Reply: faultproxy.Reset}
	})
	return &lost
}
