package rediscore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// Acquire implements driver.Engine.
func (e *engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
		return driver.AcquireReply{}, err
	}
	if err := e.store.Enter(ctx, req.Name); err != nil {
		return driver.AcquireReply{}, err
	}
	answer, done, err := e.plain.acquire(ctx, req)
	if !done {
		full, failed := e.acquireInFull(ctx, req)
		if err == nil || failed == nil {
			answer, err = full, failed // otherwise the outcome of the plain request stays unknown
		}
	}
	if err == nil && answer.Outcome == driver.Granted {
		e.store.Granted(1)
	}
	return answer, err
}

// acquireInFull runs the full script.
func (e *engine) acquireInFull(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	wait := "0"
	if req.Queue {
		wait = form.MS(req.WaiterTTL)
	}
	keys := e.store.keys.Of(e.scripts.Acquire.Keys, req.Name, req.LeaseID)
	args := append(e.serving(12), maxLead(), wait, form.Flag(req.Once), e.store.inbox.id, form.Flag(req.First))
	args = e.appendRequest(args, req)
	subscription := e.store.inbox.subscription()
	var reply any
	var acked int
	var err error
	if req.Replicas > 0 {
		reply, acked, err = e.acquireReplicated(ctx, req, keys, args)
	} else {
		reply, err = e.execAll(ctx, e.scripts.Acquire, keys, args)
	}
	if err != nil {
		return driver.AcquireReply{}, err
	}
	answer, err := parseAcquire(reply, req.MinToken)
	answer.Acked, answer.Foreign = acked, answer.Foreign && e.foreign
	if err == nil && answer.Outcome == driver.Held {
		e.plain.contended.note(req.Name)
	}
	if err == nil && answer.Outcome == driver.Granted && req.Mode != lockinfo.Exclusive {
		e.plain.several.note(req.Name)
	}
	if req.Queue && err == nil && answer.Outcome == driver.Held {
		e.store.inbox.waits(req.Name, req.LeaseID, subscription)
		e.store.inbox.listen()
	}
	return answer, err
}

// serving returns the arguments that all scripts that may hand a lock over have in common, with
// room for more.
func (e *engine) serving(more int) []string {
	return append(make([]string, 0, len(e.shared)+more), e.shared...)
}

func maxLead() string { return form.US(driver.MaxTokenLead) }

// appendRequest adds the arguments that request.lua reads.
func (e *engine) appendRequest(args []string, req driver.AcquireRequest) []string {
	mode := modes.Of(req.Mode)
	return append(args, string(req.LeaseID), strconv.Itoa(int(mode.Kind)), strconv.Itoa(mode.Limit), strconv.Itoa(mode.Permits),
		form.MS(req.TTL), form.Token(req.MinToken), e.plain.holders.Text(req.Holder))
}

// Extend implements driver.Engine.
func (e *engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	e.tracker.renewing(reqs)
	errs := e.extendAll(ctx, reqs)
	e.tracker.renewed(reqs, errs)
	return errs
}

// extendAll renews leases: the plain ones together, and the others with the full script.
func (e *engine) extendAll(ctx context.Context, reqs []driver.ExtendRequest) []error {
	errs := make([]error, len(reqs))
	rest := e.extendPlain(ctx, reqs, errs)
	for some := range slices.Chunk(rest, mostInFull) {
		e.extendInFull(ctx, reqs, some, errs)
	}
	return errs
}

const (
	// mostPlain bounds how many leases a call renews by their keys alone, and so how long the call
	// blocks the server: half a millisecond.
	mostPlain = 256
	// mostInFull is the same bound for leases that need more than their keys.
	mostInFull = 128
)

func (e *engine) extendBatch(script *lua.Script, reqs []driver.ExtendRequest, which []int, args ...string) Batch {
	var usual driver.ExtendRequest
	if len(which) > 0 {
		usual = reqs[which[0]]
	}
	usualTTL := form.MS(usual.TTL)
	return Batch{
		Op: "extend", Script: script, Args: args,
		Name: func(i int) (string, lockinfo.LeaseID) { r := &reqs[which[i]]; return r.Name, r.LeaseID },
		Add: func(args []string, i int) []string {
			r, ttl := &reqs[which[i]], usualTTL
			if r.TTL != usual.TTL {
				ttl = form.MS(r.TTL)
			}
			return append(args, string(r.LeaseID), ttl, form.Token(r.Token))
		},
	}
}

// extendPlain renews the plain leases, and returns the indexes of the others.
func (e *engine) extendPlain(ctx context.Context, reqs []driver.ExtendRequest, errs []error) (rest []int) {
	plain := make([]int, 0, len(reqs))
	for i := range reqs {
		if e.plain.several.has(reqs[i].Name) {
			rest = append(rest, i)
		} else {
			plain = append(plain, i)
		}
	}
	var mu sync.Mutex // guards rest: routes run concurrently
	b := e.extendBatch(e.scripts.PlainRenew, reqs, plain, e.memory)
	b.Answer = func(n int, item any, err error) {
		i := plain[n]
		switch {
		case err == nil && item == int64(1):
		case err == nil && (item == int64(0) || item == int64(-1)), isRefused(err):
			if item == int64(-1) {
				e.plain.several.note(reqs[i].Name)
			}
			mu.Lock()
			defer mu.Unlock()
			rest = append(rest, i)
		case err == nil:
			errs[i] = form.Malformed("extend", item)
		default:
			errs[i] = err
		}
	}
	e.store.EvalEach(ctx, len(plain), b)
	return rest
}

// extendInFull runs the script that renews leases of every kind.
func (e *engine) extendInFull(ctx context.Context, reqs []driver.ExtendRequest, which []int, errs []error) {
	b := e.extendBatch(e.scripts.Extend, reqs, which, e.memory, e.feed)
	b.Answer = func(n int, item any, err error) {
		i := which[n]
		switch {
		case isMoving(err):
			errs[i] = e.extendAlone(ctx, reqs[i], err)
		case err != nil:
			errs[i] = err
		default:
			errs[i] = parseExtend(item)
		}
	}
	e.store.EvalEach(ctx, len(which), b)
}

// Route implements driver.Router: one for each node of a Redis Cluster.
func (e *engine) Route(name string) uint32 { return e.store.Route(name) }

// Release implements driver.Engine.
func (e *engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	err := again(ctx, func() error { return e.release(ctx, req) })
	if err != nil && !driver.Definite(err) {
		e.store.inbox.look(req.Name) // the reply may have had a message
	}
	return err
}

func (e *engine) release(ctx context.Context, req driver.ReleaseRequest) error {
	if err := e.store.Enter(ctx, req.Name); err != nil {
		return err
	}
	if done, err := e.plain.release(ctx, req); done {
		if err == nil {
			e.store.Ended()
		}
		return err
	}
	remember := "0"
	if req.Cancel {
		remember = form.MS(driver.TombstoneTTL)
	}
	keys := e.store.keys.Of(e.scripts.Release.Keys, req.Name, req.LeaseID)
	args := append(e.serving(5), string(req.LeaseID), form.MS(max(req.KeepFor, 0)), remember, form.Flag(req.Lost), e.store.inbox.id)
	var all released
	for {
		reply, err := e.store.Eval(ctx, e.scripts.Release, keys, args)
		if err == nil {
			err = all.parse(reply)
		}
		if all.message != "" {
			e.store.inbox.message(e.store.inbox.channel, all.message)
			runtime.Gosched() // the new holder goes first
		}
		switch {
		case err != nil && all.ended:
			return halfDone("released", err) // INVARIANT I6: a repeat continues
		case isMoving(err):
			return e.releaseAlone(ctx, req, err)
		case err != nil:
			return err
		case !all.more:
			if all.ended {
				e.store.Ended()
			}
			return all.err()
		}
	}
}

// again repeats a request that ends something if its connection was given up. A repeat that fails
// shows nothing about the first request, and a repeat that finds no lease does not show who ended
// it. In both cases the outcome stays unknown.
func again(ctx context.Context, request func() error) error {
	err := request()
	if !errors.Is(err, ErrGivenUp) || ctx.Err() != nil {
		return err
	}
	if request() == nil {
		return nil
	}
	return err
}

// execAll runs a script until there is nothing left to do, and returns the last reply.
// INVARIANT I7: a request is refused only when no other work is left.
func (e *engine) execAll(ctx context.Context, script *lua.Script, keys, args []string) (any, error) {
	for {
		reply, err := e.store.Eval(ctx, script, keys, args)
		if err != nil || !isMore(reply) {
			return reply, err
		}
	}
}

// halfDone returns the error of a request whose last part failed. It does not wrap err, which may
// mean that nothing was done.
func halfDone(what string, err error) error {
	return fmt.Errorf("%s, but some waiters may not have been notified: %s", what, err) //nolint:errorlint // see above
}
