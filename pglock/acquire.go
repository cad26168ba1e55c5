package pglock

import (
	"context"

	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Outcomes of the functions in addition to driver.Outcome.
const (
	otherKind driver.Outcome = iota + 100
	badToken
	usedUp
)

// An answer says why a request was not granted: see answer in sql/acquire.sql.
type answer struct {
	row
	Outcome int    `json:"outcome"`
	Clock   uint64 `json:"clock"`
	Place   int    `json:"place"`
	Queue   int    `json:"queue"`
	Refused int    `json:"refused"`
}

// reply returns the reply to a request with a mode and a MinToken.
func (a *answer) reply(mode lockinfo.Mode, minToken uint64) (reply driver.AcquireReply, err error) {
	switch reply.Outcome = driver.Outcome(a.Outcome); reply.Outcome {
	case driver.Held:
		reply.Blocker = a.blocker()
	case otherKind:
		err = rules.SameKind(a.mode(), mode)
	case badToken:
		_, err = driver.LeastToken(a.Clock, minToken)
	case usedUp:
		err = rules.ErrUsedUp
	}
	if err != nil {
		return driver.AcquireReply{}, err
	}
	return reply, nil
}

func (a *answer) blocker() driver.Blocker {
	v := rules.View{Left: duration(a.ExpiresIn)}
	return v.Blocker(a.holding(), a.Place, a.Queue)
}

// Acquire implements driver.Engine.
func (e *engine) Acquire(ctx context.Context, req driver.AcquireRequest) (reply driver.AcquireReply, err error) {
	if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
		return reply, err
	}
	var a answer
	var token zeronull.Int8
	var record []byte
	m := modes.Of(req.Mode)
	err = e.change(ctx, waiting, "acquire", []any{
		req.Name, string(req.LeaseID), int32(m.Kind), int32(m.Limit), int32(m.Permits), micros(req.TTL), holders.Text(req.Holder),
		tokenOf(req.MinToken), req.First, req.Once, req.Queue, micros(req.WaiterTTL), e.inbox, e.opts.History,
	}, &token, inJSON(&a), &record)
	if err != nil {
		return reply, err
	}
	e.sweepLater()
	if token != 0 {
		e.losses.Granted(1, e.listenLater)
		return driver.AcquireReply{Outcome: driver.Granted, Token: uint64(token)}, nil
	}
	reply, err = a.reply(req.Mode, req.MinToken)
	reply.Record = record
	if reply.Place > 0 {
		e.listenLater()
	}
	return reply, err
}

// AcquireAll implements driver.AllAcquirer.
func (e *engine) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (all driver.AllReply, err error) {
	n := len(reqs)
	names, ids, whose := make([]string, n), make([]string, n), make([]string, n)
	kinds, limits, permits := make([]int32, n), make([]int32, n), make([]int32, n)
	ttls, mins, firsts := make([]int64, n), make([]int64, n), make([]bool, n)
	for i, req := range reqs {
		if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
			return all, err
		}
		m := modes.Of(req.Mode)
		names[i], ids[i], kinds[i], limits[i], permits[i] = req.Name, string(req.LeaseID), int32(m.Kind), int32(m.Limit), int32(m.Permits)
		ttls[i], whose[i], mins[i], firsts[i] = micros(req.TTL), holders.Text(req.Holder), tokenOf(req.MinToken), req.First
	}
	var a answer
	var tokens []int64
	err = e.change(ctx, waiting, "acquire_all",
		[]any{names, ids, kinds, limits, permits, ttls, whose, mins, firsts, e.opts.History}, &tokens, inJSON(&a))
	if err != nil {
		return all, err
	}
	e.sweepLater()
	if len(tokens) > 0 {
		e.losses.Granted(n, e.listenLater)
		all.Outcome = driver.Granted
		for _, token := range tokens {
			all.Tokens = append(all.Tokens, uint64(token))
		}
		return all, nil
	}
	refused := reqs[a.Refused]
	reply, err := a.reply(refused.Mode, refused.MinToken)
	if err != nil {
		return all, err
	}
	return driver.AllReply{Outcome: reply.Outcome, Refused: a.Refused, Blocker: reply.Blocker}, nil
}

// tokenOf returns a MinToken for the functions. A value above every token stays above every token.
func tokenOf(minToken uint64) int64 { return int64(min(minToken, 2*driver.MaxToken)) }
