package enginetest_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// AcquireAll acquires the locks one after the other. If one of them cannot be acquired, it restores
// the former state. Other calls never see the state in between.
func (e *engine) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	for _, req := range reqs {
		if err := driver.CheckSupport(e.caps, req); err != nil && e.fault != "AcquireAll serves what is not supported" {
			return driver.AllReply{}, err
		}
	}
	now, err := e.enterFor(ctx, e.caps.AcquireAll, "AcquireAll")
	if err != nil {
		return driver.AllReply{}, err
	}
	defer e.mu.Unlock()
	if e.fault == "AcquireAll takes 100" {
		reqs = reqs[:min(len(reqs), 100)]
	}
	if e.narrow && !strings.HasPrefix(reqs[0].Name, "{tag}") {
		return driver.AllReply{}, driver.ErrUnsupported
	}
	e.allAtOnce = true
	defer func() { e.allAtOnce = false }()
	before := e.snapshot(reqs, now)
	e.say()
	defer e.say()
	all := driver.AllReply{Outcome: driver.Granted}
	for i, req := range reqs {
		reply, err := e.acquire(e.single(req), now)
		if err != nil {
			if e.fault != "AcquireAll keeps what it has at an error" {
				maps.Copy(e.names, before)
				e.unsaid = nil
			}
			return driver.AllReply{}, err
		}
		if reply.Outcome != driver.Granted {
			if e.fault != "AcquireAll keeps what it has at a refusal" {
				if e.fault != "AcquireAll leaves events of a refusal" {
					maps.Copy(e.names, before)
				} else {
					e.restoreButEvents(before)
				}
				e.unsaid = nil
			}
			return e.notAllTaken(reply, i, all.Tokens), nil
		}
		all.Tokens = append(all.Tokens, reply.Token)
		if e.fault == "AcquireAll keeps what it has of names that differ" && !strings.HasPrefix(req.Name, "{tag}") {
			return driver.AllReply{}, driver.ErrUnsupported
		}
	}
	switch e.fault {
	case "AcquireAll checks and records in two steps":
		maps.Copy(e.names, before)
		e.pause(time.Millisecond)
		for _, req := range reqs {
			e.grant(e.purged(req.Name, now), req, now, now.Add(req.TTL))
		}
	case "AcquireAll sorts the tokens":
		slices.Reverse(all.Tokens)
	case "AcquireAll gives one token":
		for i := range all.Tokens {
			all.Tokens[i] = all.Tokens[0]
		}
	}
	return all, nil
}

// snapshot returns copies of the entries of reqs after it has settled them.
func (e *engine) snapshot(reqs []driver.AcquireRequest, now time.Time) map[string]*entry {
	before := map[string]*entry{}
	for _, req := range reqs {
		n := *e.settled(req.Name, now)
		n.leases, n.queue, n.events = slices.Clone(n.leases), slices.Clone(n.queue), slices.Clone(n.events)
		for i, l := range n.leases {
			old := *l
			n.leases[i] = &old
		}
		before[e.key(req.Name)] = &n
	}
	return before
}

// restoreButEvents restores everything except the events, for a fault.
func (e *engine) restoreButEvents(before map[string]*entry) {
	for key, n := range before {
		n.events = e.names[key].events
		e.names[key] = n
	}
}

// single returns the request to acquire for one request of AcquireAll.
func (e *engine) single(req driver.AcquireRequest) driver.AcquireRequest {
	switch e.fault {
	case "AcquireAll drops the holders":
		req.Holder = lockinfo.Holder{}
	case "AcquireAll takes one permit each":
		req.Mode = withPermits(req.Mode, 1)
	case "AcquireAll has one TTL":
		req.TTL = 40 * time.Second
	}
	return req
}

// notAllTaken returns the reply of AcquireAll if reply is the reply to request i.
func (e *engine) notAllTaken(reply driver.AcquireReply, i int, tokens []uint64) driver.AllReply {
	all := driver.AllReply{Outcome: reply.Outcome, Refused: i, Blocker: reply.Blocker}
	switch e.fault {
	case "AcquireAll names the first":
		all.Refused = 0
	case "AcquireAll does not say by whom":
		all.Blocker = driver.Blocker{}
	case "AcquireAll shows the tokens of a refusal":
		all.Tokens = tokens
	case "AcquireAll answers Held if cancelled":
		all.Outcome = driver.Held
	}
	return all
}
