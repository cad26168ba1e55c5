package enginetest_test

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A record is a record that Complete stored.
type record struct {
	by     lockinfo.LeaseID
	data   []byte
	expiry time.Time
}

func (e *engine) Complete(ctx context.Context, req driver.CompleteRequest) error {
	now, err := e.enterFor(ctx, e.caps.Records, "Complete")
	if err != nil {
		return err
	}
	defer e.mu.Unlock()
	n := e.looked(req.Name, now)
	l := e.find(n, req.LeaseID, "Complete")
	if repeat := n.record != nil && n.record.by == req.LeaseID; repeat {
		switch e.fault {
		case "second Complete is lost":
			return driver.ErrLost
		case "second Complete starts the retention anew":
			n.record.expiry = now.Add(req.Retention)
		case "second Complete ends whatever is there":
			n.leases = nil
		}
		return nil
	}
	switch {
	case l == nil && e.fault == "Complete does not check the lease",
		l == nil && e.fault == "Complete checks that nobody else holds" && len(n.leases) == 0:
		n.record = &record{by: req.LeaseID, data: req.Record, expiry: now.Add(req.Retention)}
		return nil
	case l == nil && e.fault == "Complete of a lost lease is not an error",
		l == nil && e.fault == "Complete takes a place for a lease" && e.place(n, req.LeaseID, "Complete") >= 0:
		return nil
	case l == nil && e.fault == "Complete with Keep does not check the lease" && req.Keep:
		e.keep(n, req, now)
		return nil
	case l == nil:
		return driver.ErrLost
	}
	e.keep(n, req, now)
	if req.Keep && e.fault != "Complete does not know Keep" {
		if e.fault != "kept record counts as completion" {
			n.record.by = ""
		}
		return nil
	}
	if e.fault == "completion is written as a release" {
		e.noteLease(lockinfo.HistoryReleased, n, l, now)
	} else {
		e.noteLease(lockinfo.HistoryCompleted, n, l, now)
	}
	if e.fault != "Complete leaves the lease" {
		e.end(n, l)
	}
	switch e.fault {
	case "Complete forgets the last token":
		n.last = 0
	case "Complete ends every lease":
		n.leases = nil
	}
	e.giveUp(n, now)
	if e.fault != "Complete hands over to nobody" {
		e.serve(n, now)
	}
	return nil
}

// keep stores the record of a live lease.
func (e *engine) keep(n *entry, req driver.CompleteRequest, now time.Time) {
	r := &record{by: req.LeaseID, data: e.in(req.Record), expiry: now.Add(req.Retention)}
	if n.record != nil {
		switch e.fault {
		case "first record stays":
			return
		case "longest retention stays":
			r.expiry = n.record.expiry
		}
	}
	switch e.fault {
	case "record is kept for a minute":
		r.expiry = now.Add(time.Minute)
	case "empty record is none":
		if len(r.data) == 0 {
			return
		}
	}
	n.record = r
}

// giveUp ends the places of requests with Once.
func (e *engine) giveUp(n *entry, now time.Time) {
	if e.fault == "Complete keeps the places" {
		return
	}
	v := rules.View{Recorded: n.record != nil}
	n.queue = slices.DeleteFunc(n.queue, func(p *place) bool {
		if v.GivesUp(p.req.Once) || e.fault == "Complete gives up every place" {
			if e.fault != "place that a record ends leaves unseen" {
				e.notePlace(lockinfo.HistoryGaveUp, n, p, now)
			}
			e.tell(p.req.LeaseID, driver.Notice{})
			return true
		}
		return false
	})
}

// in returns the bytes that the store keeps for data.
func (s *store) in(data []byte) []byte {
	switch s.fault {
	case "record is not copied":
		return data
	case "record is text":
		return bytes.ToValidUTF8(data, []byte("?"))
	case "record is cut":
		data = data[:min(len(data), 1<<16)]
	}
	return bytes.Clone(data)
}

// out returns the bytes of a reply for stored data.
func (s *store) out(data []byte) []byte {
	if s.fault == "record is given by reference" {
		return data
	}
	return bytes.Clone(data)
}

func (e *engine) Recall(ctx context.Context, name string) (driver.Record, bool, error) {
	now, err := e.enterFor(ctx, e.caps.Records, "Recall")
	if err != nil {
		return driver.Record{}, false, err
	}
	defer e.mu.Unlock()
	r := e.looked(name, now).record
	switch {
	case r == nil && e.fault == "Recall fails if there is no record":
		return driver.Record{}, false, driver.ErrLost
	case r == nil:
		return driver.Record{}, false, nil
	}
	left := r.expiry.Sub(now)
	if e.fault == "Recall says what is left in seconds" {
		left /= 1000
	}
	return driver.Record{Data: e.out(r.data), ExpiresIn: left}, true, nil
}

func (e *engine) Forget(ctx context.Context, name string) (bool, error) {
	now, err := e.enterFor(ctx, e.caps.Records, "Forget")
	if err != nil {
		return false, err
	}
	defer e.mu.Unlock()
	n := e.looked(name, now)
	found := n.record != nil
	if e.fault != "Forget keeps the record" {
		n.record = nil
	}
	switch e.fault {
	case "Forget always finds a record":
		found = true
	case "Forget ends the leases":
		n.leases = nil
	case "Forget forgets the last token":
		n.last = 0
	}
	return found, nil
}
