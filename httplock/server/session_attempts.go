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
	mu    sync.Mutex
	until map[string]time.Time // by peer: when all of its attempts are forgotten
}

// begin counts an attempt, or refuses it. forgive takes it back, if the token was right.
func (a *attempts) begin(r *http.Request) (forgive func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, who := time.Now(), a.peerLocked(r)
	until := a.until[who]
	if until.Before(now) {
		until = now
	}
	if wait := until.Sub(now) - (freeAttempts-1)*attemptEvery; wait > 0 {
		return nil, &door.Refusal{
			Status: http.StatusTooManyRequests, Code: "too-many-sign-ins", Again: wait,
			Detail: "too many wrong tokens came from your address: wait, and then show one that the server knows",
		}
	}
	if a.until == nil {
		a.until = map[string]time.Time{}
	}
	a.until[who] = until.Add(attemptEvery)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if until, known := a.until[who]; known {
			a.until[who] = until.Add(-attemptEvery)
		}
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
	if _, known := a.until[who]; !known && len(a.until) >= mostPeers {
		a.forgetLocked()
		if len(a.until) >= mostPeers {
			return "others"
		}
	}
	return who
}

// forgetLocked forgets the peers that may try as often as any.
func (a *attempts) forgetLocked() {
	now := time.Now()
	for who, until := range a.until {
		if !until.After(now) {
			delete(a.until, who)
		}
	}
}
