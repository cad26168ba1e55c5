package enginetest_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func (e *engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	errs := make([]error, len(reqs))
	now, err := e.enter(ctx)
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	defer e.mu.Unlock()
	for i, req := range reqs {
		errs[i] = e.extend(req, now)
		if errs[i] != nil && e.fault == "batch ends at the first failure" || i == 99 && e.fault == "batch ends after 100" {
			for j := i + 1; j < len(reqs); j++ {
				errs[j] = driver.ErrLost
			}
			break
		}
	}
	if e.fault == "batch answers failures first" {
		slices.SortStableFunc(errs, func(a, b error) int {
			switch {
			case a != nil && b == nil:
				return -1
			case a == nil && b != nil:
				return 1
			}
			return 0
		})
	}
	return errs
}

func (e *engine) extend(req driver.ExtendRequest, now time.Time) error {
	if err := driver.CheckTTL(e.caps, "TTL", req.TTL); err != nil && e.fault != "Extend beyond MaxTTL is served" {
		return err
	}
	n := e.looked(req.Name, now)
	l := e.find(n, req.LeaseID, "Extend")
	if l == nil && e.fault == "Extend re-creates a lost lease" && len(n.leases) == 0 && n.last > 0 {
		l = e.grant(n, driver.AcquireRequest{Name: req.Name, LeaseID: req.LeaseID}, now, now.Add(req.TTL))
	}
	if l == nil && e.fault == "Extend takes a place for a lease" && e.place(n, req.LeaseID, "Extend") >= 0 {
		return nil
	}
	if l == nil && e.fault == "errors carry the name" {
		return fmt.Errorf("%w: %s", driver.ErrLost, req.Name)
	}
	if l == nil {
		return driver.ErrLost
	}
	if req.Token != 0 && req.Token != l.token && e.fault != "Extend ignores the token" {
		return driver.ErrLost
	}
	l.extended = true
	if e.fault == "renewal is written" {
		e.noteLease(lockinfo.HistoryAcquired, n, l, now)
	}
	switch expiry := now.Add(req.TTL); {
	case e.fault == "Extend shortens":
		l.expiry = expiry
	case e.fault == "Extend does nothing" || !expiry.After(l.expiry):
	default:
		l.expiry = expiry
	}
	switch e.fault {
	case "Extend changes the token":
		n.last++
		l.token = n.last
	case "Extend begins since anew":
		l.granted = now
	case "Extend wakes the waiters":
		for _, p := range n.queue {
			e.tell(p.req.LeaseID, driver.Notice{})
		}
	}
	return nil
}

func (e *engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	now, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer e.mu.Unlock()
	if longest := e.caps.MaxTTL; longest > 0 && req.KeepFor > longest {
		switch e.fault {
		case "KeepFor beyond MaxTTL is refused":
			return driver.ErrInvalid
		case "KeepFor beyond MaxTTL is kept":
		default:
			req.KeepFor = longest
		}
	}
	n := e.looked(req.Name, now)
	if e.fault != "place outlives the release" && (e.fault != "place outlives the cancel" || !req.Cancel) {
		e.leave(n, req.LeaseID, now)
	}
	l := e.find(n, req.LeaseID, "Release")
	if req.Cancel {
		e.bury(req, l != nil, now)
		if e.fault == "cancel ends whatever is there" {
			n.leases = nil
		}
		if l != nil && e.fault == "cancel leaves the lease" {
			return nil
		}
	}
	if l == nil && req.KeepFor > 0 && len(n.leases) == 0 && e.fault == "KeepFor closes a free name" {
		n.leases = append(n.leases, &lease{released: true, expiry: now.Add(req.KeepFor)})
	}
	if l != nil {
		e.noteEnd(n, l, req, now)
		e.release(n, l, req, now)
	} else if e.fault == "release of nothing is written" {
		e.note(n, lockinfo.HistoryEvent{Kind: lockinfo.HistoryReleased}, req.LeaseID, now)
	}
	switch {
	case e.fault == "release hands over to nobody" && !req.Cancel,
		e.fault == "cancel hands over to nobody" && req.Cancel,
		e.fault == "place that is left hands over to nobody" && l == nil:
	default:
		e.serve(n, now)
	}
	if l == nil && e.fault != "release of a lost lease is not an error" {
		return driver.ErrLost
	}
	return nil
}

// release ends a live lease. With KeepFor it keeps the name closed.
func (e *engine) release(n *entry, l *lease, req driver.ReleaseRequest, now time.Time) {
	if req.KeepFor > 0 && e.fault != "KeepFor is ignored" {
		l.released, l.expiry = true, now.Add(req.KeepFor)
		if e.fault == "KeepFor begins since anew" {
			l.granted = now
		}
		if e.fault == "KeepFor is added to the lease" {
			l.expiry = l.expiry.Add(40 * time.Second)
		}
		return
	}
	if e.fault == "release of an extended lease does nothing" && l.extended {
		return
	}
	e.end(n, l)
	switch e.fault {
	case "release forgets the last token":
		n.last = 0
	case "release drops the queue":
		n.queue = nil
	}
}

// bury creates a tombstone for the lease ID of req.
func (e *engine) bury(req driver.ReleaseRequest, found bool, now time.Time) {
	switch {
	case e.fault == "no tombstone with KeepFor" && req.KeepFor > 0:
	case e.fault == "no tombstone":
	case e.fault == "tombstone only if nothing was found" && found:
	case e.fault == "tombstone only if there was a lease" && !found:
	case e.fault == "tombstone for half the time":
		e.tombstones[req.LeaseID] = now.Add(driver.TombstoneTTL / 2)
	default:
		e.tombstones[req.LeaseID] = now.Add(driver.TombstoneTTL)
	}
}

func (e *engine) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	now, err := e.enterFor(ctx, e.caps.Shared, "Downgrade")
	if err != nil {
		return err
	}
	defer e.mu.Unlock()
	n := e.looked(req.Name, now)
	l := e.find(n, req.LeaseID, "Downgrade")
	switch {
	case l == nil && e.fault == "Downgrade of a lost lease is not an error",
		l == nil && e.fault == "Downgrade takes a place for a lease" && e.place(n, req.LeaseID, "Downgrade") >= 0:
		return nil
	case l == nil:
		return driver.ErrLost
	case n.mode == lockinfo.Shared && e.fault == "second Downgrade fails":
		return driver.ErrLost
	case n.mode == lockinfo.Shared && e.fault == "second Downgrade releases":
		e.end(n, l)
	case e.fault == "Downgrade does nothing":
		return nil
	}
	n.mode = lockinfo.Shared
	switch e.fault {
	case "Downgrade changes the token":
		n.last++
		l.token = n.last
	case "Downgrade begins since anew":
		l.granted = now
	case "Downgrade starts the TTL anew":
		l.expiry = now.Add(l.req.TTL)
	case "Downgrade drops the holder":
		l.req.Holder = lockinfo.Holder{}
	case "Downgrade gives the lock up":
		e.end(n, l)
	case "Downgrade wakes nobody":
		return nil
	case "Downgrade lets all readers in":
		slices.SortStableFunc(n.queue, func(a, b *place) int { return int(b.req.Mode) - int(a.req.Mode) })
	}
	e.serve(n, now)
	return nil
}
