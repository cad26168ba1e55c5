package rediscore

import (
	"context"
	"errors"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// Most requests are plain: an exclusive lock that is free is taken, and given
// back with nobody waiting. For those there are scripts that cost little, and
// that carry many of them in one call. What such a script answers with "not
// plain" it has left as it was, and its caller asks by the full script.
//
// What the server refuses of a call as a whole may be due to another request in
// it: see isRefused.
type plain struct {
	history            bool // what happens is written down
	acquires, releases *fleet
	contended, several *hints
	holders            form.Holders
}

func newPlain(s *Store, scripts lua.Engine, tokenMemory string, history bool) *plain {
	p := &plain{history: history, contended: newHints(contendedFor), several: newHints(severalFor)}
	var once []string
	if history {
		once = []string{s.keys.Inboxes()}
	}
	p.acquires = newFleet(s, scripts.PlainAcquire, func(args []string, r *rider) []string {
		return append(args, string(r.id), r.ttl, r.holder)
	}, append([]string{tokenMemory}, once...)...)
	p.releases = newFleet(s, scripts.PlainRelease, func(args []string, r *rider) []string { return append(args, string(r.id)) }, once...)
	return p
}

// acquire grants a plain request. It reports false if the full script is to be
// asked, and then, with an error, that the first request may have been carried
// out: a repeat finds the lease (INVARIANT I6), or else the error stands.
func (p *plain) acquire(ctx context.Context, req driver.AcquireRequest) (reply driver.AcquireReply, done bool, err error) {
	if req.Mode != driver.Exclusive || req.Once || req.MinToken != 0 || req.Replicas != 0 || p.contended.has(req.Name) {
		return driver.AcquireReply{}, false, nil
	}
	r := p.acquires.rider(req.Name, req.LeaseID)
	r.ttl, r.holder = form.MS(req.TTL), p.holders.Text(req.Holder)
	token, err := p.acquires.ask(ctx, r)
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

// release ends a plain lease. It reports false if the full script is to be asked.
func (p *plain) release(ctx context.Context, req driver.ReleaseRequest) (done bool, err error) {
	if req.Cancel || req.KeepFor > 0 || req.Lost && p.history || p.contended.has(req.Name) || p.several.has(req.Name) {
		return false, nil
	}
	ended, err := p.releases.ask(ctx, p.releases.rider(req.Name, req.LeaseID))
	switch {
	case isRefused(err):
		return false, nil
	case err == nil && ended == 0:
		p.contended.note(req.Name)
		return false, nil
	case err == nil && ended != 1:
		err = form.Malformed("release", ended)
	}
	return true, err
}

// isRefused reports whether a call of many was refused in a way that each has to
// find out about for itself: the user has no right to one of the keys, or the slot
// is being moved, when less can be asked for.
func isRefused(err error) bool { return errors.Is(err, driver.ErrPermission) || isMoving(err) }
