package server

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

const (
	// freeAttempts is how many wrong tokens one peer may try at once to sign in with.
	freeAttempts = 10

	// attemptEvery is how often it may try another one after those.
	attemptEvery = 6 * time.Second

	// mostPeers is how many peers are known apart; the others count as one.
	mostPeers = 1000
)

// attempts bounds how many wrong tokens may be tried. Behind a proxy all are one peer:
// who they are is what they say.
type attempts struct {
	mu   sync.Mutex
	paid map[string]time.Time // by peer: when all of its attempts are forgotten
}

// begin counts an attempt, or refuses it. forgive takes it back, if the token was right.
func (a *attempts) begin(r *http.Request) (forgive func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, who := time.Now(), a.peerLocked(r)
	paid := a.paid[who]
	if paid.Before(now) {
		paid = now
	}
	if wait := paid.Sub(now) - (freeAttempts-1)*attemptEvery; wait > 0 {
		return nil, &door.Refusal{
			Status: http.StatusTooManyRequests, Code: "too-many-sign-ins", Again: wait,
			Detail: "too many wrong tokens came from your address: wait, and then show one that the server knows",
		}
	}
	if a.paid == nil {
		a.paid = map[string]time.Time{}
	}
	a.paid[who] = paid.Add(attemptEvery)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.paid[who] = a.paid[who].Add(-attemptEvery)
	}, nil
}

// peerLocked returns whose attempt r is: an address, or a network of IPv6.
func (a *attempts) peerLocked(r *http.Request) string {
	who := "" // a unix socket
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		bits := 32
		if addr := peer.Addr().Unmap(); addr.Is6() {
			bits = 64
		}
		network, _ := peer.Addr().Unmap().Prefix(bits) // they fit
		who = network.String()
	}
	if _, known := a.paid[who]; !known && len(a.paid) >= mostPeers {
		a.forgetLocked()
		if len(a.paid) >= mostPeers {
			return "others"
		}
	}
	return who
}

// forgetLocked forgets the peers that may try as often as any.
func (a *attempts) forgetLocked() {
	now := time.Now()
	for who, paid := range a.paid {
		if !paid.After(now) {
			delete(a.paid, who)
		}
	}
}
