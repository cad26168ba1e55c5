package enginetest_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func (e *engine) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return lockinfo.LockState{}, err
	}
	defer e.mu.Unlock()
	if e.fault == "Inspect of a free name fails" && e.names[e.key(name)] == nil {
		return lockinfo.LockState{}, driver.ErrLost
	}
	return e.describe(name, e.looked(name, now), now), nil
}

// describe returns what Inspect reports of n.
func (s *store) describe(name string, n *entry, now time.Time) lockinfo.LockState {
	lock := lockinfo.LockState{Name: name, LastToken: n.last, QueueLength: len(n.queue)}
	if s.fault == "Inspect forgets the token of a free name" && len(n.leases) == 0 {
		lock.LastToken = 0
	}
	for _, l := range n.leases {
		lock.Mode = lock.Mode.Plus(n.modeOf(l))
		h := s.holding(n, l, now)
		switch s.fault {
		case "Inspect drops the holder":
			h.Holder = lockinfo.Holder{}
		case "Inspect drops since":
			h.Since = 0
		case "Inspect reports what is left as the TTL":
			h.TTL = h.ExpiresIn
		case "Inspect drops the token":
			h.Token = 0
		case "Inspect drops the permits":
			h.Mode = withPermits(h.Mode, 1)
		}
		lock.Holders = append(lock.Holders, h)
	}
	for _, p := range n.queue {
		w := lockinfo.Place{
			LeaseID: p.req.LeaseID, Mode: p.req.Mode, Holder: s.holder(p.req),
			Since: now.Sub(p.since), ExpiresIn: p.until.Sub(now),
		}
		switch s.fault {
		case "Inspect drops the holder of a place":
			w.Holder = lockinfo.Holder{}
		case "Inspect drops the mode of a place":
			w.Mode = lockinfo.Exclusive
		case "Inspect drops the end of a place":
			w.ExpiresIn = 0
		}
		lock.Queue = append(lock.Queue, w)
	}
	if s.fault == "Inspect turns the queue round" {
		slices.Reverse(lock.Queue)
	}
	switch s.fault {
	case "Inspect shows few places":
		lock.Queue = lock.Queue[:min(len(lock.Queue), 200)]
	case "Inspect drops the limit":
		if n := lock.Mode.Permits(); n != 0 {
			lock.Mode = lockinfo.Permits(n, 0)
		}
	case "Inspect counts the permits of one lease":
		for _, h := range lock.Holders {
			lock.Mode = h.Mode
		}
	case "Inspect drops the mode":
		lock.Mode = lockinfo.Exclusive
	case "Inspect drops the length of the queue":
		lock.QueueLength = 0
	}
	return lock
}

// Diagnose returns no findings.
func (e *engine) Diagnose(ctx context.Context, _ driver.DiagnoseRequest) (driver.Diagnosis, error) {
	if _, err := e.enterFor(ctx, e.caps.Diagnose, "Diagnose"); err != nil {
		return driver.Diagnosis{}, err
	}
	defer e.mu.Unlock()
	return driver.Diagnosis{}, nil
}

func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	return func(yield func(lockinfo.LockState, error) bool) {
		locks, err := e.list(ctx, prefix)
		if err != nil && e.fault != "List swallows errors" {
			yield(lockinfo.LockState{}, err)
		}
		for _, l := range locks {
			if !yield(l, nil) && e.fault != "List does not stop" {
				return
			}
		}
	}
}

func (e *engine) list(ctx context.Context, prefix string) (locks []lockinfo.LockState, err error) {
	now, err := e.enterFor(ctx, e.caps.List, "List")
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	for _, name := range slices.Collect(maps.Keys(e.names)) {
		n := e.looked(name, now)
		if !e.listed(n) || !e.matches(name, prefix) {
			continue
		}
		lock := e.describe(name, n, now)
		switch e.fault {
		case "List drops the length of the queue":
			lock.QueueLength = 0
		case "List drops the permits":
			for i := range lock.Holders {
				lock.Holders[i].Mode = lockinfo.Exclusive
			}
		case "List drops since":
			for i := range lock.Holders {
				lock.Holders[i].Since = 0
			}
		}
		lock.Queue = nil // as the contract allows
		locks = append(locks, lock)
	}
	if e.fault == "List yields one twice" && len(locks) > 100 {
		locks = append(locks, locks[0])
	}
	return locks, nil
}

// listed reports whether List shows n.
func (e *engine) listed(n *entry) bool {
	switch e.fault {
	case "List shows free names":
		return true
	case "List shows names with a record":
		return len(n.leases) > 0 || n.record != nil
	case "List leaves out names without a holder":
		return len(n.leases) > 0
	}
	return len(n.leases) > 0 || len(n.queue) > 0
}

func (s *store) matches(name, prefix string) bool {
	switch s.fault {
	case "List ignores the prefix":
		return true
	case "List takes ? for any character":
		return matchesAny(name, prefix)
	case "List is not sensitive to case":
		return strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix))
	}
	return strings.HasPrefix(name, prefix)
}

// matchesAny reports whether name begins with the pattern prefix, in which ? matches any character.
func matchesAny(name, prefix string) bool {
	for i := range len(prefix) {
		if i >= len(name) || prefix[i] != '?' && name[i] != prefix[i] {
			return false
		}
	}
	return true
}
