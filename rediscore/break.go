package rediscore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// An about is what break.lua keeps for people: the form of the record, and,
// with the name, of the message to the holders.
type about struct {
	Name   string `json:"name,omitempty"`
	Author string `json:"author"`
	Reason string `json:"reason,omitempty"`
}

func (a about) String() string {
	text, _ := json.Marshal(a) // strings only: cannot fail
	return string(text)
}

// Break implements driver.Breaker.
func (e *engine) Break(ctx context.Context, req driver.BreakRequest) ([]lockinfo.Broken, error) {
	return e.BreakAndLift(ctx, req, 0)
}

// BreakAndLift breaks leases, and lifts the last token above req.Token unless
// that is further ahead of the server's clock than lift.
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
			return nil, fmt.Errorf("broken in part: %s", err.Error()) // unknown: a repeat goes on
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

// parseBroken reads the records of broken leases, with the server's clock in
// ms. A line that makes no sense, or is too old, is left out.
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

// A brokenLease is what is kept of a lease that was broken.
type brokenLease struct {
	lockinfo.Broken
	at, granted int64 // us
}

// event returns the event of the break, as feed.lua keeps it.
func (b *brokenLease) event(name string) lockinfo.HistoryEvent {
	token := strconv.FormatUint(b.Token, 10)
	return lockinfo.HistoryEvent{
		ID: eventID(name, token, 'b'), Kind: lockinfo.HistoryBroken, Name: name, Ago: b.Ago,
		Mode: b.Mode, Token: b.Token, Holder: b.Holder,
		Held: form.Ago(b.at - b.granted), Author: b.Author, Reason: b.Reason,
	}
}

// parseLine reads one record; break.lua has the form.
func parseLine(line string, now int64) (b brokenLease, ok bool) {
	head, rest, _ := strings.Cut(line, "\t")
	text, holder, ok := strings.Cut(rest, "\t")
	id, head, _ := strings.Cut(head, " ")
	lease, head, _ := strings.Cut(head, " ")
	fields, _, ok2 := cutFields(head+" ", 6)
	var a about
	if !ok || !ok2 || json.Unmarshal([]byte(text), &a) != nil {
		return b, false
	}
	return brokenLease{Broken: lockinfo.Broken{
		ID: lockinfo.LeaseID(id), LeaseID: lockinfo.LeaseID(lease), Token: uint64(fields[0]), Mode: readMode(fields[3], fields[4], fields[1]),
		Holder: form.ReadHolder(holder), Author: a.Author, Reason: a.Reason,
		Ago: time.Duration(min(max(now-fields[2], 0), form.MaxTTL.Milliseconds())) * time.Millisecond,
	}, at: fields[2] * 1000, granted: fields[5]}, true
}

// OnLoss implements driver.LossTeller.
func (e *engine) OnLoss(told func(driver.Loss)) (stop func()) {
	return e.store.inbox.losses.OnLoss(told)
}

// lost runs in the connection's reading goroutine. A message that makes no
// sense is dropped.
func (i *inbox) lost(message string) {
	id, text, _ := strings.Cut(message, " ")
	var a about
	if !lockinfo.LeaseID(id).Valid() || json.Unmarshal([]byte(text), &a) != nil || driver.CheckBreak(a.Author, a.Reason) != nil {
		return
	}
	i.losses.Tell(driver.Loss{
		Name: a.Name, LeaseID: lockinfo.LeaseID(id), Err: &lockinfo.BrokenError{Author: a.Author, Reason: a.Reason},
	})
}
