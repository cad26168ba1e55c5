package enginetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A broken is the record of a lease that was broken.
type broken struct {
	lockinfo.Broken
	at time.Time
}

func (e *engine) Break(ctx context.Context, req driver.BreakRequest) ([]lockinfo.Broken, error) {
	now, err := e.enterFor(ctx, e.caps.Break, "Break")
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	n, ended := e.looked(req.Name, now), false
	for _, l := range slices.Clone(n.leases) {
		if e.isBroken(l, req) {
			ended = true
			e.breakLease(n, l, req, now)
		}
	}
	n.broken = n.broken[max(0, len(n.broken)-e.maxBreaks()):]
	if e.fault != "Break hands over to nobody" {
		e.serve(n, now)
	}
	var all []lockinfo.Broken
	for _, b := range n.broken {
		if b.ID == req.ID && (e.fault != "second Break answers nothing" || ended) {
			all = append(all, e.remembered(b, now))
		}
	}
	switch e.fault {
	case "Break does not say what it ended":
		return nil, nil
	case "Break answers the other way round":
		slices.Reverse(all)
	}
	return all, nil
}

// isBroken reports whether req ends l.
func (s *store) isBroken(l *lease, req driver.BreakRequest) bool {
	switch s.fault {
	case "Break opens what is kept closed":
		req.Closed = l.released || req.Closed
	case "Break with Closed ends leases":
		req.Closed = l.released
	}
	if l.released != req.Closed {
		return false
	}
	switch s.fault {
	case "Break ends whatever is there":
		return true
	case "Break with Older ends whatever is there":
		return req.Older || l.token == req.Token
	case "Break always ends older leases":
		return l.token <= req.Token
	case "Break ignores Older":
		return l.token == req.Token
	case "Break leaves what is kept closed":
		return !l.released && req.Hits(l.token, false)
	case "Break does nothing":
		return false
	}
	return req.Hits(l.token, l.released)
}

// breakLease ends l, records the break and reports the loss.
func (e *engine) breakLease(n *entry, l *lease, req driver.BreakRequest, now time.Time) {
	b := broken{at: now, Broken: lockinfo.Broken{
		ID: req.ID, LeaseID: l.req.LeaseID, Token: l.token, Mode: n.modeOf(l), Holder: e.holder(l.req),
		Author: req.Author, Reason: req.Reason,
	}}
	switch e.fault {
	case "Break drops the holder":
		b.Holder = lockinfo.Holder{}
	case "Break drops the reason":
		b.Reason = ""
	case "Break drops the mode":
		b.Mode = lockinfo.Exclusive
	}
	n.broken = append(n.broken, b)
	e.noteBreak(n, l, req, now)
	switch e.fault {
	case "Break leaves the lease":
	case "Break keeps the name closed":
		l.released = true
	case "permits of a broken lease leak":
		n.leaked += l.req.Mode.Permits()
		e.end(n, l)
	case "Break forgets the last token":
		n.last = 0
		e.end(n, l)
	case "Break drops the queue":
		n.queue = nil
		e.end(n, l)
	default:
		e.end(n, l)
	}
	e.tellLoss(driver.Loss{Name: req.Name, LeaseID: l.req.LeaseID, Err: b.Err()})
}

func (s *store) maxBreaks() int {
	switch s.fault {
	case "every break is remembered":
		return 1 << 20
	case "only the last break is remembered":
		return 1
	}
	return driver.MaxBreaks
}

func (e *engine) Breaks(ctx context.Context, name string) ([]lockinfo.Broken, error) {
	now, err := e.enterFor(ctx, e.caps.Break, "Breaks")
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	var all []lockinfo.Broken
	for _, b := range e.looked(name, now).broken {
		all = append(all, e.remembered(b, now))
	}
	if e.fault == "Breaks fails if there is no record" && len(all) == 0 {
		return nil, driver.ErrLost
	}
	return all, nil
}

func (s *store) remembered(b broken, now time.Time) lockinfo.Broken {
	b.Ago = now.Sub(b.at)
	if s.fault == "Breaks are always new" {
		b.Ago = 0
	}
	return b.Broken
}

// forgetBreaks removes the records that are too old.
func (s *store) forgetBreaks(n *entry, now time.Time) {
	memory := driver.BreakMemory
	switch s.fault {
	case "break is forgotten after a minute":
		memory = time.Minute
	case "break is never forgotten":
		memory *= 100
	}
	if s.fault == "grant forgets the breaks" && len(n.leases) > 0 {
		memory = 0
	}
	n.broken = slices.DeleteFunc(n.broken, func(b broken) bool { return now.Sub(b.at) >= memory })
}

// A listener is a callback for losses, registered through one engine.
type listener struct {
	engine *engine
	told   func(driver.Loss)
}

func (e *engine) OnLoss(told func(driver.Loss)) (stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &listener{e, told}
	e.listeners = append(e.listeners, l)
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.fault != "losses never stop" {
			e.listeners = slices.DeleteFunc(e.listeners, func(other *listener) bool { return other == l })
		}
	}
}

// tellLoss reports a loss to the listeners. The caller holds e.mu.
func (e *engine) tellLoss(loss driver.Loss) {
	switch e.fault {
	case "Break tells nobody":
		return
	case "loss has no reason":
		loss.Err = driver.ErrLost
	case "loss names another lease":
		loss.LeaseID = lockinfo.NewLeaseID()
	case "loss only says to look":
		loss.LeaseID, loss.Err = "", nil
	}
	for _, l := range e.listeners {
		if l.engine == e || e.fault != "losses stay in the engine" {
			l.told(loss)
		}
	}
	if e.chatty {
		for _, l := range e.listeners {
			l.told(driver.Loss{Name: loss.Name})
		}
	}
}
