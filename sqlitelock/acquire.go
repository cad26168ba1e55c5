package sqlitelock

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// An attempt is the result of an AcquireRequest.
type attempt struct {
	driver.AcquireReply       // without the place
	seq                 int64 // the row of the place, if it has one
}

// Acquire implements driver.Engine. A request without a place only reads while the lock is held, so
// that it does not queue for the write lock.
func (e *engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
		return driver.AcquireReply{}, err
	}
	if !req.Queue || req.Once {
		reply, decided, err := e.glance(ctx, req)
		if decided || err != nil {
			reply.Queue = e.count(ctx, req.Name, reply.Queue)
			return reply, err
		}
	}
	if req.Queue {
		e.watches.Requests(req.LeaseID, req.Name) // before the lock can be handed over to it
	}
	a, err := answer(ctx, e.transact, func(t *tx) (attempt, error) { return t.acquire(req) })
	if err != nil {
		return driver.AcquireReply{}, err
	}
	if a.Outcome == driver.Granted {
		e.losses.Granted(1, e.hearAlarm)
	}
	if a.seq != 0 {
		e.watches.Queued(req.LeaseID)
		e.listen()
		ranks, all := e.ranks(ctx, req.Name, []int64{a.seq})
		a.Place, a.Queue = ranks[0], all
		return a.AcquireReply, nil
	}
	a.Queue = e.count(ctx, req.Name, a.Queue)
	return a.AcquireReply, nil
}

// glance decides a request that changes nothing. It only reads, and its reply was true at the time
// of the read. It grants and hands over nothing, because only a transaction can see that a name is
// free and take it.
func (e *engine) glance(ctx context.Context, req driver.AcquireRequest) (reply driver.AcquireReply, decided bool, err error) {
	err = e.query(ctx, func(r reader) error {
		if _, free, err := r.glimpse(req.Name, req.LeaseID); free || err != nil {
			return err
		}
		v, err := r.look(req.Name, req.LeaseID)
		if err != nil {
			return err
		}
		if r.now, err = e.clock.now(); err != nil {
			return err
		}
		if !v.settled() || v.endedBy(r.now) {
			return nil
		}
		v.Left = r.now.until(v.first.expiry)
		if v.Placed, err = r.placed(&req, &v); err != nil {
			return err
		}
		outcome, _, err := v.Judge(&req, r.now.micros)
		if err != nil {
			return err
		}
		switch outcome {
		case driver.Cancelled, driver.Repeated:
			decided = true
		case driver.Recorded:
			reply.Record, _, decided, err = r.recall(req.Name)
		case driver.Held:
			decided = !req.Queue
			reply.Blocker = v.blocker(r.now)
		}
		reply.Outcome = outcome
		return err
	})
	return reply, decided, err
}

// endedBy reports whether a lease or place that the view counts as live has ended. The view may
// then show a state that never existed.
func (v *view) endedBy(now instant) bool {
	return v.Held && v.first.expiry <= now.boot || v.Queued && v.headExpiry <= now.boot
}

// acquire decides a request. INVARIANT I1: the check and the record are one step.
func (t *tx) acquire(req driver.AcquireRequest) (a attempt, err error) {
	v, err := t.meet(req.Name, req.LeaseID)
	if err != nil {
		return a, err
	}
	if v.Placed, err = t.placed(&req, &v); err != nil {
		return a, err
	}
	outcome, least, err := v.Judge(&req, t.now.micros)
	if err != nil {
		return a, t.refuse(err)
	}
	a.Outcome = outcome
	switch outcome {
	case driver.Granted:
		a.Token, err = t.take(req, v, least)
	case driver.Recorded:
		a.Record, _, _, err = t.recall(req.Name)
	case driver.Held:
		a.Blocker = v.blocker(t.now)
		if req.Queue {
			a.seq, err = t.givePlace(req)
		}
	}
	return a, err
}

// placed reports whether a request that must be the first of its lease ID already has a place.
func (r *reader) placed(req *driver.AcquireRequest, v *view) (bool, error) {
	if !req.First || !v.Queued {
		return false, nil
	}
	var seq int64
	return r.sql.one(hasPlaceSQL, []any{req.Name, req.LeaseID}, &seq)
}

// take records the lease of a request, or extends the lease that it already has.
func (t *tx) take(req driver.AcquireRequest, v view, least uint64) (token uint64, err error) {
	expiry := t.now.after(req.TTL)
	if v.own != 0 {
		// INVARIANT I6: a repeat gets the token of the first request.
		return uint64(v.own), t.sql.run(lengthenSQL, req.Name, t.bootID, req.LeaseID, t.now.boot, expiry, int64(0))
	}
	if token, err = rules.NextToken(uint64(v.last), least); err != nil {
		return 0, err
	}
	mode, holder := modes.Of(req.Mode), holders.Text(req.Holder)
	if err := t.grant(req.Name, req.LeaseID, v.last, token, mode, holder, expiry); err != nil {
		return 0, err
	}
	return token, t.note(lockinfo.HistoryEvent{Kind: lockinfo.HistoryAcquired, Name: req.Name, Token: token}, mode, holder)
}

// grant records a lease. rules.NextToken has drawn its token after the name's last one.
// INVARIANT I2.
func (t *tx) grant(name string, id lockinfo.LeaseID, last int64, token uint64, f modes.Fields, holder string, expiry int64) error {
	var err error
	if new := int64(token); last != 0 && hour(new) == hour(last) {
		err = t.sql.run(renewTokenSQL, name, new)
	} else {
		err = t.sql.run(putTokenSQL, name, new, hour(new))
	}
	if err != nil {
		return err
	}
	t.added++
	return t.sql.run(grantSQL, name, id, int64(token), f.Kind, f.Limit, f.Permits, holder, t.bootID, t.now.boot, expiry)
}

// hour returns the hour of a token.
func hour(token int64) int64 { return token / time.Hour.Microseconds() }

// AcquireAll implements driver.AllAcquirer, in one transaction.
func (e *engine) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	for _, req := range reqs {
		if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
			return driver.AllReply{}, err
		}
	}
	var reply driver.AllReply
	err := e.transactAll(ctx, len(reqs), func(t *tx) (err error) {
		reply, err = t.acquireAll(reqs)
		return err
	})
	if err != nil {
		return driver.AllReply{}, err
	}
	e.losses.Granted(len(reply.Tokens), e.hearAlarm)
	if reply.Outcome == driver.Held {
		reply.Queue = e.count(ctx, reqs[reply.Refused].Name, reply.Queue)
	}
	return reply, nil
}

// acquireAll decides all requests before it records the first lease. The names differ, so no lease
// changes what another request sees.
func (t *tx) acquireAll(reqs []driver.AcquireRequest) (driver.AllReply, error) {
	type verdict struct {
		view
		least uint64
	}
	verdicts := make([]verdict, len(reqs))
	for i, req := range reqs {
		v, err := t.meet(req.Name, req.LeaseID)
		if err != nil {
			return driver.AllReply{}, err
		}
		outcome, least, err := v.Judge(&req, t.now.micros)
		if err != nil {
			return driver.AllReply{}, t.refuse(err)
		}
		switch outcome {
		case driver.Granted:
			verdicts[i] = verdict{v, least}
		case driver.Held:
			return driver.AllReply{Outcome: outcome, Refused: i, Blocker: v.blocker(t.now)}, nil
		default:
			return driver.AllReply{Outcome: outcome, Refused: i}, nil
		}
	}
	reply := driver.AllReply{Outcome: driver.Granted}
	for i, req := range reqs {
		token, err := t.take(req, verdicts[i].view, verdicts[i].least)
		if err != nil {
			return driver.AllReply{}, err
		}
		reply.Tokens = append(reply.Tokens, token)
	}
	return reply, nil
}
