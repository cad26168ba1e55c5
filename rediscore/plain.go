package rediscore

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// A plain request acquires a free exclusive lock, or releases one that has no waiters. Most
// requests are plain. They have cheap scripts, and one call of these carries many requests. If such
// a script replies "not plain", it has changed nothing, and the engine repeats the request with the
// full script.
//
// The server may refuse a whole call because of another request in it: see isRefused.
type plain struct {
	history                     bool          // events are recorded
	longest                     time.Duration // a plain lease's TTL is less, so that the last token outlasts the lease
	acquires, releases, cancels *batcher
	contended, several          *hints
	holders                     form.Holders
}

func newPlain(s *Store, scripts lua.Engine, tokenMemory time.Duration, feed string) *plain {
	p := &plain{history: feed != "", longest: tokenMemory / 2, contended: newHints(contendedFor), several: newHints(severalFor)}
	p.acquires = newBatcher(s, scripts.PlainAcquire, func(args []string, r *request) []string {
		return append(args, string(r.id), r.ttl, r.holder)
	}, form.MS(tokenMemory), feed)
	ids := func(args []string, r *request) []string { return append(args, string(r.id)) }
	p.releases = newBatcher(s, scripts.PlainRelease, ids, feed)
	p.cancels = newBatcher(s, scripts.PlainCancel, ids, form.MS(driver.TombstoneTTL), feed)
	if s.cluster {
		p.releases.routeQueues, p.cancels.routeQueues = p.acquires.routeQueues, p.acquires.routeQueues
	}
	return p
}

// acquire grants a plain request. It reports false if the full script must run. If it also returns
// an error, the first request may have been carried out: the full script either finds the lease
// (INVARIANT I6), or the caller returns this error.
func (p *plain) acquire(ctx context.Context, req driver.AcquireRequest) (reply driver.AcquireReply, done bool, err error) {
	if req.Mode != lockinfo.Exclusive || req.Once || req.MinToken != 0 || req.Replicas != 0 || req.TTL >= p.longest || p.contended.has(req.Name) {
		return driver.AcquireReply{}, false, nil
	}
	r := p.acquires.newRequest(req.Name, req.LeaseID)
	r.ttl, r.holder = form.MS(req.TTL), p.holders.Text(req.Holder)
	token, err := p.acquires.do(ctx, r)
	switch {
	case errors.Is(err, ErrGivenUp) && ctx.Err() == nil:
		return driver.AcquireReply{}, false, err
	case isRefused(err):
		return driver.AcquireReply{}, false, nil
	case err == nil && token == 0:
		p.contended.note(req.Name)
		return driver.AcquireReply{}, false, nil
	case err == nil && !isToken(token):
		err = form.Malformed("acquire", token)
	}
	return driver.AcquireReply{Outcome: driver.Granted, Token: uint64(token)}, true, err
}

// The replies of plain_release.lua and plain_cancel.lua.
const (
	notPlain = 0
	hasEnded = 1
	wasNone  = 2 // there was no lease to cancel
)

// release ends or cancels a plain lease. It reports false if the full script must run. Cancels are
// batched like other plain requests. When a network recovers there may be thousands; if each were a
// call of its own, they would keep other requests from the few connections.
func (p *plain) release(ctx context.Context, req driver.ReleaseRequest) (done bool, err error) {
	if req.KeepFor > 0 || req.Lost && p.history || p.contended.has(req.Name) || p.several.has(req.Name) {
		return false, nil
	}
	f := p.releases
	if req.Cancel {
		f = p.cancels
	}
	reply, err := f.do(ctx, f.newRequest(req.Name, req.LeaseID))
	switch {
	case isRefused(err):
		return false, nil
	case err == nil && reply == notPlain:
		p.contended.note(req.Name)
		return false, nil
	case err == nil && reply == wasNone && req.Cancel:
		err = driver.ErrLost
	case err == nil && reply != hasEnded:
		err = form.Malformed("release", reply)
	}
	return true, err
}
