package rediscore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// Break implements driver.Breaker.
func (e *engine) Break(ctx context.Context, req driver.BreakRequest) ([]lockinfo.Broken, error) {
	return e.BreakAndLift(ctx, req, 0)
}

// BreakAndLift breaks leases, and raises the last token above req.Token. It does not raise the
// token if req.Token is ahead of the server's clock by more than lift.
func (e *engine) BreakAndLift(ctx context.Context, req driver.BreakRequest, lift time.Duration) ([]lockinfo.Broken, error) {
	if err := e.store.Enter(ctx, req.Name); err != nil {
		return nil, err
	}
	keys := e.store.keys.Of(e.scripts.Break.Keys, req.Name, "")
	args := append(e.serving(10), string(req.ID), form.Token(req.Token), form.Flag(req.Older), form.Flag(req.Closed), "0",
		form.MS(driver.BreakMemory), strconv.Itoa(driver.MaxBreaks),
		about{Author: req.Author, Reason: req.Reason}.String(),
		about{Name: req.Name, Author: req.Author, Reason: req.Reason}.String(),
		form.US(lift))
	all := map[uint64]lockinfo.Broken{}
	for {
		reply, err := e.store.Eval(ctx, e.scripts.Break, keys, args)
		if err != nil && len(all) > 0 {
			return nil, fmt.Errorf("broken in part: %s", err.Error()) // the outcome is unknown; a repeated request continues
		}
		if err != nil {
			return nil, err
		}
		more, next, broken, err := parseBreak(reply)
		if err != nil {
			return nil, err
		}
		for _, b := range broken {
			all[b.Token] = b
		}
		if !more {
			return driver.ByToken(all), nil
		}
		args[e.scripts.Break.Arg("from")] = next
	}
}

// Breaks implements driver.Breaker.
func (e *engine) Breaks(ctx context.Context, name string) ([]lockinfo.Broken, error) {
	reply, err := e.store.EvalAbout(ctx, e.scripts.Breaks, name, "")
	if err != nil {
		return nil, err
	}
	var clock, lines string
	if !form.Read(reply, &clock, &lines) {
		return nil, form.Malformed("breaks", reply)
	}
	return parseBroken(clock, lines)
}

// parseBreak reads the reply of break.lua.
func parseBreak(reply any) (more bool, next string, broken []lockinfo.Broken, err error) {
	var flag int64
	var clock, lines string
	if form.Read(reply, &flag) && flag == -1 {
		return false, "", nil, fmt.Errorf("%w: a client that is not holdfast has it: end it there", driver.ErrKindMismatch)
	}
	if !form.Read(reply, &flag, &next, &clock, &lines) {
		return false, "", nil, form.Malformed("break", reply)
	}
	broken, err = parseBroken(clock, lines)
	return flag != 0, next, broken, err
}

// parseBroken reads the records of broken leases. clock is the server's clock in ms. It skips lines
// that are malformed or too old.
func parseBroken(clock, lines string) (broken []lockinfo.Broken, err error) {
	ms, err := strconv.ParseInt(clock, 10, 64)
	if err != nil {
		return nil, form.Malformed("break", clock)
	}
	for line := range strings.Lines(lines) {
		if b, ok := parseLine(strings.TrimSuffix(line, "\n"), ms); ok && b.Ago < driver.BreakMemory {
			broken = append(broken, b.Broken)
		}
	}
	return broken, nil
}

// OnLoss implements driver.LossTeller.
func (e *engine) OnLoss(listener func(driver.Loss)) (stop func()) {
	return e.store.inbox.losses.OnLoss(listener)
}
